"""What the timing of kernels needs: the models' sizes, random weights in turn, replays of a graph.

Each operation's weights are repeated until they are several times the L2 cache, and a graph runs through all
of them, so that every call finds its weights in memory. Given are medians of replays.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4chat.kernels.cute import arrange
from dsv4chat.kernels.packed import Packed

ROTATE_BYTES = 600_000_000
REPLAYS = 15


@dataclass(frozen=True)
class Sizes:
    """The real sizes of a model's layers."""

    name: str
    hidden: int
    heads: int
    q_lora: int
    groups: int
    o_lora: int
    inner: int
    experts: int
    vocab: int = 129280
    head_dim: int = 512
    picks: int = 6


FLASH = Sizes("flash", 4096, 64, 1024, 8, 1024, 2048, 256)
PRO = Sizes("pro", 7168, 128, 1536, 16, 1024, 3072, 384)


@dataclass(frozen=True)
class Timed:
    """One operation. seconds: of one call; bytes: of weights that a call must read."""

    model: str
    what: str
    kernel: str
    bytes: int
    seconds: float
    rows: int

    @property
    def rate(self) -> float:
        """Bytes a second."""
        return self.bytes / self.seconds


def bandwidth(device: torch.device) -> float:
    """Bytes a second that this GPU reads: the best of two reductions over 4 GB, medians of replays."""
    values = torch.empty(1 << 30, dtype=torch.float32, device=device).normal_()
    best = 0.0
    for reduce in (torch.sum, torch.amax):
        out = torch.empty((), device=device)
        seconds = replay_seconds(lambda reduce=reduce, out=out: out.copy_(reduce(values)), 1)  # type: ignore[misc]
        best = max(best, values.nbytes / seconds)
    return best


def replay_seconds(body: Callable[[], object], calls: int) -> float:
    """Median seconds of one of the `calls` that `body` makes, as a replayed graph."""
    body()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        body()
    graph.replay()
    times = []
    for _ in range(REPLAYS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1000)
    return float(statistics.median(times)) / calls


def random_bytes(format: str, shape: tuple[int, ...], device: torch.device) -> Packed:
    """Random bytes of a format, made quickly; values are finite, their size does not matter."""
    *lead, rows, columns = shape
    size = {"nvfp4": columns // 2, "fp8": columns, "bf16": 2 * columns}[format]
    raw = torch.randint(0, 256, (*lead, rows, size), dtype=torch.uint8, device=device)
    if format == "bf16":
        return Packed("plain", (raw & 0xBF).view(torch.bfloat16))
    if format == "fp8":
        scales = torch.full(
            (*lead, -(-rows // 128), -(-columns // 128)), 118, dtype=torch.uint8, device=device
        )
        return Packed("FP8", (raw & 0xBF).view(torch.float8_e4m3fn), scales, grouped=True)
    scales = torch.randint(40, 60, (*lead, rows, columns // 16), dtype=torch.uint8, device=device)
    factor = torch.full((*lead, rows), 1e-3, device=device)
    # Random codes are random in any order.
    return Packed("NVFP4", raw, scales.view(torch.float8_e4m3fn), factor, spread=True, grouped=True)


def copies(format: str, shape: tuple[int, ...], device: torch.device) -> list[arrange.Matrix]:
    """As many random matrices as fill ROTATE_BYTES, at least 3."""
    first = arrange.matrix(random_bytes(format, shape, device))
    assert first is not None
    count = min(64, max(3, ROTATE_BYTES // first.nbytes))
    others = [arrange.matrix(random_bytes(format, shape, device)) for _ in range(count - 1)]
    return [first, *(other for other in others if other is not None)]


def activations(rows: int, columns: int, device: torch.device) -> Tensor:
    """Random bfloat16 rows."""
    return torch.randn(rows, columns, device=device).bfloat16()
