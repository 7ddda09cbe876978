"""RMSNorm, in float32 inside and cast once at the end.

    y = x * rsqrt(mean(x^2) + eps) * weight        (Zhang and Sennrich 2019; mean over the last axis)

The variance, the product and the weight are float32 whatever the input's type, as DeepSeek-V4 does it.
"""

import torch
from torch import Tensor


def inverse_rms(x: Tensor, eps: float) -> Tensor:
    """rsqrt(mean(x^2) + eps) over the last axis, kept as an axis of size 1, float32."""
    x = x.float()
    return torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x (..., d) normalised and multiplied by weight (d,); same shape and type as x."""
    normed = x.float() * inverse_rms(x, eps)
    return (normed * weight.float()).to(x.dtype)
