"""What would stand in the way of running a model here: the GPU, its kernels, the files, the memory.

Nothing is loaded but the headers of the weights' files. Every finding is one sentence; what is wrong says
what to do.
"""

import ctypes
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import torch

from dsv4chat.assets import demo_path
from dsv4chat.kernels.cute import builder, catalogue, store
from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.checkpoint import Checkpoint
from dsv4chat.runtime.errors import EngineError
from dsv4chat.runtime.placement import choose_kv_dtype

Level = Literal["good", "note", "problem"]

DEFAULT_CONTEXT = 32_768
GIB = 2**30
# Graphs, the libraries' own memory and a step's temporaries.
OVERHEAD_BYTES = 2 * GIB

# What tensor parallelism splits among the ranks; all else every rank holds whole.
_SPLIT = re.compile(
    r"(embed|head)\.weight"
    r"|.*\.attn\.(wq_b\.weight|wo_a\.weight|wo_b\.weight|attn_sink)"
    r"|.*\.ffn\.(experts\.\d+|shared_experts)\.w[123]\.weight"
)


@dataclass(frozen=True)
class Finding:
    """One sentence. level: "problem" keeps the model from running, a "note" is to be known."""

    level: Level
    subject: str
    text: str


@dataclass(frozen=True)
class GPU:
    """memory, free: bytes. kernels: whether all are built for it."""

    name: str
    capability: tuple[int, int]
    memory: int
    free: int
    kernels: bool


@dataclass(frozen=True)
class Memory:
    """Bytes of the weights as stored and on each rank, and of the cache, which every rank holds whole."""

    weights: int
    rank: int
    cache: int
    context: int


@dataclass
class Examination:
    """Everything that was found. memory: None where no model could be looked at."""

    findings: list[Finding] = field(default_factory=list)
    gpus: list[GPU] = field(default_factory=list)
    memory: Memory | None = None

    @property
    def healthy(self) -> bool:
        return all(finding.level != "problem" for finding in self.findings)

    def add(self, level: Level, subject: str, text: str) -> None:
        self.findings.append(Finding(level, subject, text))


def examine(
    model: str = "demo", gpus: int | None = None, max_context: int | None = None, kv_dtype: str = "auto"
) -> Examination:
    """Look at this machine and at a model. gpus: how many to plan for; by default those that are here.

    max_context: by default the model's own, at most 32,768. Never raises for what it finds.
    """
    found = Examination()
    _software(found)
    _gpus(found)
    _kernels(found)
    _model(found, model, gpus, max_context, kv_dtype)
    return found


def _software(found: Examination) -> None:
    found.add("good", "software", f"Python {platform.python_version()}, PyTorch {torch.__version__}.")


def _gpus(found: Examination) -> None:
    if not torch.cuda.is_available():
        why = "PyTorch here is built without CUDA" if torch.version.cuda is None else "no GPU answers"
        found.add(
            "note",
            "GPU",
            f"No CUDA device can be used ({why}); models run on the CPU, which suits the demo model only.",
        )
        return
    found.add(
        "good", "driver", f"Driver for CUDA {_driver_version()}, PyTorch built for {torch.version.cuda}."
    )
    for index in range(torch.cuda.device_count()):
        capability = torch.cuda.get_device_capability(index)
        free, memory = torch.cuda.mem_get_info(index)
        architecture = catalogue.architecture(capability)
        build = None if architecture is None else store.find(architecture)
        gpu = GPU(torch.cuda.get_device_name(index), capability, memory, free, build is not None)
        found.gpus.append(gpu)
        found.add(
            "good",
            "GPU",
            f"{index}: {gpu.name}, capability {capability[0]}.{capability[1]}, {memory / GIB:.0f} GiB, "
            f"{free / GIB:.0f} GiB free.",
        )


def _driver_version() -> str:
    version = ctypes.c_int()
    try:
        ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except OSError:
        return "unknown"
    return f"{version.value // 1000}.{version.value % 1000 // 10}"


def _kernels(found: Examination) -> None:
    if not found.gpus:
        return
    architecture = catalogue.architecture(found.gpus[0].capability)
    if architecture is None:
        found.add(
            "note",
            "kernels",
            "There are no kernels for this GPU (Hopper and Blackwell have them); PyTorch's operations run, "
            "some ten times slower.",
        )
    elif found.gpus[0].kernels:
        found.add("good", "kernels", f"All built for {architecture}, in {store.folder()}.")
    elif builder.dsl_version() is not None:
        found.add(
            "note",
            "kernels",
            f"Not built for {architecture} yet; `dsv4chat kernels build` does it, or the first load will.",
        )
    else:
        found.add(
            "note",
            "kernels",
            f"Not built for {architecture}, and nvidia-cutlass-dsl is not installed: pip install "
            "'dsv4chat[gpu]', then `dsv4chat kernels build`, or copy a cache from another machine.",
        )


def _model(found: Examination, model: str, gpus: int | None, max_context: int | None, kv_dtype: str) -> None:
    try:
        checkpoint = Checkpoint.open(demo_path() if model == "demo" else model)
        storage = choose_kv_dtype(kv_dtype)
        context = max_context or min(checkpoint.config.max_position, DEFAULT_CONTEXT)
        cache = KVCache(checkpoint.config, storage, context, torch.device("cpu"))
    except EngineError as error:
        found.add("problem", "model", str(error))
        return
    config = checkpoint.config
    found.add(
        "good",
        "model",
        f"{config.num_layers} layers, {sum(1 for _ in checkpoint.names()):,} tensors, all there and of the "
        f"right shape, {_size(checkpoint.bytes_total)} ({', '.join(_forms(checkpoint))}).",
    )
    ranks = gpus or max(1, len(found.gpus))
    sizes = list(_sizes(checkpoint))
    split, whole = (sum(size for is_split, size in sizes if is_split is want) for want in (True, False))
    memory = Memory(
        checkpoint.bytes_total,
        whole + -(-split // ranks),
        cache.row_bytes(0, context) + cache.small_bytes,
        context,
    )
    found.memory = memory
    if context > config.max_position:
        found.add(
            "note", "context", f"The model was made for {config.max_position:,} tokens, not for {context:,}."
        )
    where = f"On each of {ranks} GPUs" if ranks > 1 else "On one device"
    found.add(
        "good",
        "memory",
        f"{where}: {_size(memory.rank)} of weights and {_size(memory.cache)} of cache at {context:,} tokens.",
    )
    _room(found, memory, ranks, config.num_heads, config.o_groups)


def _room(found: Examination, memory: Memory, ranks: int, heads: int, groups: int) -> None:
    """Whether it fits, and on how many GPUs it would."""
    if ranks > 1 and (heads % ranks or groups % ranks):
        found.add(
            "problem",
            "GPUs",
            f"{heads} heads in {groups} groups do not split over {ranks} GPUs; use 1, 2, 4 or 8.",
        )
    if not found.gpus:
        return
    if ranks > len(found.gpus):
        found.add("problem", "GPUs", f"{ranks} GPUs are asked for and {len(found.gpus)} are here.")
    needed = memory.rank + memory.cache + OVERHEAD_BYTES
    smallest = min(gpu.free for gpu in found.gpus[:ranks])
    if needed <= smallest:
        found.add("good", "memory", f"It fits: {_size(needed)} of {_size(smallest)} free.")
        return
    enough = [n for n in (2, 4, 8) if memory.weights / n + memory.cache + OVERHEAD_BYTES <= smallest]
    advice = f"use {enough[0]} GPUs like this" if enough else "use larger GPUs, or a smaller model"
    if memory.cache > memory.rank / 2:
        advice += ", or a smaller --max-context"
    found.add("problem", "memory", f"{_size(needed)} are needed and {_size(smallest)} are free; {advice}.")


def _sizes(checkpoint: Checkpoint) -> Iterator[tuple[bool, int]]:
    """Whether a weight is split among the ranks, and its stored bytes; the drafting layer is not loaded."""
    for name in checkpoint.names():
        if not name.startswith("mtp."):
            yield _SPLIT.fullmatch(name) is not None, checkpoint.nbytes(name)


def _forms(checkpoint: Checkpoint) -> list[str]:
    """The formats of the weights, by bytes, largest first."""
    totals: dict[str, int] = {}
    for name in checkpoint.names():
        form = checkpoint.form(name)
        totals[form] = totals.get(form, 0) + checkpoint.nbytes(name)
    return [
        f"{form} {size / checkpoint.bytes_total:.0%}" for form, size in sorted(totals.items(), key=_second)
    ]


def _second(item: tuple[str, int]) -> int:
    return -item[1]


def _size(count: int) -> str:
    if count >= GIB:
        return f"{count / GIB:.1f} GiB"
    return f"{count / 2**20:.1f} MiB"
