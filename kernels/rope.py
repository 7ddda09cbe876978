"""Rotary position embedding on the last R channels, interleaved pairs, with YaRN frequencies.

Pair i of position t, (x[2i], x[2i+1]) seen as the complex number x[2i] + j x[2i+1], is multiplied by
exp(j t f_i). f_i = theta^(-2i/R); YaRN (Peng et al. 2023) divides the slow frequencies by `factor`:

    d(r) = R ln(L / (2 pi r)) / (2 ln theta)
    low  = max(floor(d(beta_fast)), 0),  high = min(ceil(d(beta_slow)), R - 1)
    ramp_i = clip((i - low) / (high - low), 0, 1)
    f_i -> f_i / factor * ramp_i + f_i * (1 - ramp_i)

Angles, sines and cosines are float32: that is what the model was trained with. There is no mscale.
"""

import math

import torch
from torch import Tensor


def frequencies(
    rope_dim: int,
    theta: float,
    *,
    factor: float = 1.0,
    original_length: int = 0,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    device: torch.device | None = None,
) -> Tensor:
    """Angle per position of each pair, (rope_dim / 2,) float32. YaRN when `original_length` > 0."""
    exponent = torch.arange(0, rope_dim, 2, dtype=torch.float32) / rope_dim
    freqs = 1.0 / (theta**exponent)
    if original_length > 0:

        def dimension(rotations: float) -> float:
            return rope_dim * math.log(original_length / (2 * math.pi * rotations)) / (2 * math.log(theta))

        low = max(float(math.floor(dimension(beta_fast))), 0.0)
        high = min(float(math.ceil(dimension(beta_slow))), rope_dim - 1.0)
        if low == high:
            high += 0.001
        index = torch.arange(rope_dim // 2, dtype=torch.float32)
        ramp = ((index - low) / (high - low)).clamp(0, 1)
        freqs = freqs / factor * ramp + freqs * (1 - ramp)
    return freqs.to(device)


def rotations(positions: Tensor, freqs: Tensor) -> Tensor:
    """exp(j * position * frequency): positions (n,), freqs (R/2,) -> (n, R/2) complex64."""
    angles = positions.float()[:, None] * freqs
    return torch.complex(angles.cos(), angles.sin())


def rotate_(x: Tensor, table: Tensor) -> Tensor:
    """Turn the last R channels of x in place; returns x.

    x: (n, d) or (n, heads, d) float32, unit stride in the last axis; table: (n, R/2) complex64.
    Pass `table.conj()` for the inverse rotation.
    """
    if x.dim() == 3:
        table = table[:, None, :]
    tail = x[..., x.shape[-1] - 2 * table.shape[-1] :]
    torch.view_as_complex(tail.view(*tail.shape[:-1], -1, 2)).mul_(table)
    return x
