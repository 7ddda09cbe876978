"""Whether weights fit a device, asked before anything is read: running out half-way can end others too."""

import math
import os

import torch

from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.errors import EngineError
from dsv4chat.runtime.shapes import required_shapes

_USABLE = 0.9


def memory_of(device: torch.device) -> int | None:
    """Bytes that are free on a GPU, or that this machine has; None where the system does not tell."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def weights_as_tensors(config: ModelConfig, dtype: torch.dtype) -> int:
    """Bytes of all weights as plain tensors of `dtype`."""
    return dtype.itemsize * sum(math.prod(shape) for shape in required_shapes(config).values())


def check_weights_fit(needed: int, device: torch.device) -> None:
    """Raises EngineError when the device's memory cannot hold `needed` bytes of weights."""
    there = memory_of(device)
    if there is not None and needed > _USABLE * there:
        raise EngineError(
            f"The weights need {needed / 1e9:.0f} GB and {_named(device)} has {there / 1e9:.0f} GB; "
            "choose a smaller model or another device (for random weights: fewer layers)."
        )


def _named(device: torch.device) -> str:
    return "this machine" if device.type == "cpu" else f"the device {device}"
