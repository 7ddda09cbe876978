"""What "auto" means: where a model runs, in which formats and with how many threads."""

import os
from pathlib import Path

import torch

from dsv4chat.runtime.errors import EngineError


def choose_device(name: str) -> torch.device:
    """The device for auto | cpu | cuda. Raises EngineError for another name, or cuda where there is none."""
    available = torch.cuda.is_available()
    chosen = _choose("device", name, ("cpu", "cuda"), "cuda" if available else "cpu")
    if chosen == "cuda" and not available:
        raise EngineError("No CUDA device can be used here; choose device cpu, or check the driver.")
    return torch.device(chosen)


def choose_dtype(name: str, device: torch.device) -> torch.dtype:
    """Of activations and unquantised weights: auto | float32 | bfloat16; auto is float32 on a CPU."""
    default = "float32" if device.type == "cpu" else "bfloat16"
    chosen = _choose("dtype", name, ("float32", "bfloat16"), default)
    return torch.float32 if chosen == "float32" else torch.bfloat16


def choose_kv_dtype(name: str) -> str:
    """Of the cache: auto | float32 | bfloat16 | fp8; auto is fp8 with 4-bit index keys, as in training."""
    return _choose("kv_dtype", name, ("float32", "bfloat16", "fp8"), "fp8")


def _choose(name: str, value: str, values: tuple[str, ...], default: str) -> str:
    if value == "auto":
        return default
    if value not in values:
        raise EngineError(f"{name} is {value!r}; it must be auto, {', '.join(values[:-1])} or {values[-1]}.")
    return value


def use_threads(count: int | None = None) -> int:
    """Let torch compute with `count` threads; by default OMP_NUM_THREADS, else one a physical core.

    A second thread on the same core finds its units busy and only takes time from other programs.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "")
    count = count or (int(asked) if asked.isdecimal() else 0) or physical_cores()
    torch.set_num_threads(count)
    return count


def physical_cores() -> int:
    """The cores this process may run on, hardware threads of one core counted once."""
    if not hasattr(os, "sched_getaffinity"):  # macOS, whose processors have one thread a core or share evenly
        return os.cpu_count() or 1
    usable = os.sched_getaffinity(0)
    siblings = {_siblings(processor) for processor in usable}
    return max(1, len(siblings))


def _siblings(processor: int) -> str:
    path = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return str(processor)
