"""Exact power-of-two block scales: 2^ceil(log2(amax / limit)), stored as one E8M0 byte (exponent + 127).

amax and limit are split as mantissa * 2^exponent, so that the comparison is exact: a float division and a
logarithm would misplace values next to limit * 2^k.
"""

import math

import torch
from torch import Tensor

E8M0_BIAS = 127
SMALLEST_EXPONENT = -126  # the smallest whose power is a normal float32, hence exact to multiply with


def scale_byte(amax: Tensor, limit: float) -> Tensor:
    """E8M0 byte of the smallest power of two s with amax <= limit * s; float32 -> uint8, same shape."""
    limit_mantissa, limit_exponent = math.frexp(limit)
    mantissa, exponent = torch.frexp(amax)
    exponent = exponent - limit_exponent + (mantissa > limit_mantissa).to(exponent.dtype)
    return (exponent.clamp(SMALLEST_EXPONENT, E8M0_BIAS) + E8M0_BIAS).to(torch.uint8)


def scale_value(byte: Tensor) -> Tensor:
    """2^(byte - 127) as float32, for bytes of `scale_byte` (1..254)."""
    return (byte.to(torch.int32) << 23).view(torch.float32)
