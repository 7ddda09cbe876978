"""What "auto" means: where a model runs, and in which formats."""

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
