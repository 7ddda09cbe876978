"""Weight formats: plain tensors and the three quantised ones, under one name.

Each quantised class has `.shape` (out, in), `.dequantize(dtype)`, `.nbytes`, `.device`, `.to(device)`,
`.rows(start, stop)` and `.quantize(matrix)`.
"""

import torch

from dsv4chat.kernels.codes import FormatError
from dsv4chat.kernels.fp8 import FP8Weight
from dsv4chat.kernels.mxfp4 import MXFP4Weight
from dsv4chat.kernels.nvfp4 import NVFP4Weight

__all__ = [
    "FP8Weight",
    "FormatError",
    "MXFP4Weight",
    "NVFP4Weight",
    "QuantizedWeight",
    "Weight",
    "format_name",
    "to_tensor",
]

QuantizedWeight = NVFP4Weight | MXFP4Weight | FP8Weight
Weight = torch.Tensor | QuantizedWeight


def format_name(weight: Weight) -> str:
    """ "NVFP4", "MXFP4", "FP8", or a plain tensor's dtype ("bfloat16", "float32", ...)."""
    if isinstance(weight, torch.Tensor):
        return str(weight.dtype).removeprefix("torch.")
    return type(weight).__name__.removesuffix("Weight")


def to_tensor(weight: Weight, dtype: torch.dtype) -> torch.Tensor:
    """The values of any weight as a plain tensor of `dtype`."""
    return weight.to(dtype) if isinstance(weight, torch.Tensor) else weight.dequantize(dtype)
