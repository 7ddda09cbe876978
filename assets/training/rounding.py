"""Number formats seen while training: NVFP4 weights, FP8 cached values, 4-bit index keys.

Each function rounds in the forward direction; `straight_through` passes the gradient as if nothing had been
rounded. The formats are those of the checkpoint (NVFP4) and of the key-value cache at run time.
"""

import torch
from torch import Tensor

FP4_MAX = 6.0
FP8_MAX = 448.0


def straight_through(x: Tensor, rounded: Tensor) -> Tensor:
    """The value of `rounded` with the gradient of `x`."""
    return x + (rounded - x).detach()


def to_fp4(x: Tensor) -> Tensor:
    """The nearest of 0, .5, 1, 1.5, 2, 3, 4, 6 (and negatives), ties to the even code, saturating; f32."""
    size = x.abs()
    step = torch.where(size < 2, 0.5, torch.where(size < 4, 1.0, 2.0))
    return torch.copysign(((size / step).round() * step).clamp(max=FP4_MAX), x)


def to_fp8(x: Tensor) -> Tensor:
    """The nearest E4M3 value, ties to even, saturating at 448; f32."""
    return x.clamp(-FP8_MAX, FP8_MAX).to(torch.float8_e4m3fn).float()


def nvfp4(weight: Tensor, block: int = 16) -> Tensor:
    """What a matrix (..., out, in) becomes in NVFP4: 4-bit codes, an E4M3 scale for each 16 inputs (never
    zero while the block has a value) and one scale for each matrix. f32 in, f32 out.

    The matrix's scale is a power of two (`matrix_scale`), so that every value fits bfloat16 exactly: what
    training multiplies by is what the runtime decodes.
    """
    blocks = weight.unflatten(-1, (-1, block))
    largest = blocks.abs().amax(-1, keepdim=True)
    whole = matrix_scale(largest.amax((-3, -2), keepdim=True))
    scale = to_fp8((largest / (FP4_MAX * whole)).clamp(min=2.0**-9)) * whole
    codes = to_fp4(blocks / scale)
    return (codes * scale).flatten(-2)


def matrix_scale(largest: Tensor) -> Tensor:
    """The smallest power of two with which E4M3 block scales reach a matrix's largest magnitude."""
    return power_of_two_above(largest.clamp(min=1e-20) / (FP4_MAX * FP8_MAX))


def power_of_two_above(x: Tensor) -> Tensor:
    """2^ceil(log2(x)) of positive f32 values, exact: a nonzero mantissa carries into the exponent."""
    return ((x.view(torch.int32) + 0x7FFFFF) & 0x7F800000).view(torch.float32)


def cached_value(x: Tensor, rope_dims: int, block: int = 64) -> Tensor:
    """A key-value entry (..., D) as the FP8 cache returns it: E4M3 for every `block` channels before the
    rotary ones (a last, shorter block included), which stay as they are. Straight-through; keeps the dtype.
    """
    parts = []
    for part in x[..., :-rope_dims].float().detach().split(block, dim=-1):
        scale = power_of_two_above(part.abs().amax(-1, keepdim=True).clamp(min=1e-4) / FP8_MAX)
        parts.append(to_fp8(part / scale) * scale)
    rounded = torch.cat((*parts, x[..., -rope_dims:].detach().float()), dim=-1).to(x.dtype)
    return straight_through(x, rounded)


def index_value(x: Tensor, rotation: Tensor, block: int = 32) -> Tensor:
    """Index queries or keys (..., D) after the Hadamard `rotation` (D, D), rounded to 4 bits in blocks of 32
    with power-of-two scales. Straight-through; keeps the dtype.
    """
    turned = x @ rotation.to(x.dtype)
    blocks = turned.detach().float().unflatten(-1, (-1, block))
    scale = power_of_two_above(blocks.abs().amax(-1, keepdim=True).clamp(min=1e-30) / FP4_MAX)
    return straight_through(turned, (to_fp4(blocks / scale) * scale).flatten(-2).to(x.dtype))
