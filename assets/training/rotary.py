"""Rotary positions (YaRN) and Hadamard rotation, on batched activations.

Every layer of the demo model has a compressor, so all of them use `compress_rope_theta` with YaRN. Tables are
f32; the last `rope_head_dim` channels are rotated as interleaved pairs (0,1), (2,3), ...
"""

import math

import torch
from torch import Tensor

from dsv4chat.runtime.config import ModelConfig


def rope_tables(config: ModelConfig, positions: int) -> tuple[Tensor, Tensor]:
    """cos and sin, each (positions, rope_head_dim / 2) f32, of the layers that compress."""
    dims, theta, yarn = config.rope_head_dim, config.compress_rope_theta, config.yarn
    index = torch.arange(0, dims, 2, dtype=torch.float64)
    frequency = theta ** (-index / dims)
    if yarn is not None:

        def turn(rotations: float) -> float:
            return dims * math.log(yarn.original_length / (rotations * 2 * math.pi)) / (2 * math.log(theta))

        low = max(math.floor(turn(yarn.beta_fast)), 0)
        high = min(math.ceil(turn(yarn.beta_slow)), dims - 1)
        ramp = ((index / 2 - low) / max(high - low, 0.001)).clamp(0, 1)
        frequency = frequency / yarn.factor * ramp + frequency * (1 - ramp)
    angle = torch.arange(positions, dtype=torch.float64)[:, None] * frequency
    return angle.cos().float(), angle.sin().float()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn the last 2R channels of x (..., D) by the angles cos, sin (broadcast to (..., R)); keeps the
    dtype.
    """
    width = 2 * cos.shape[-1]
    plain, turned = x[..., :-width], x[..., -width:].float().unflatten(-1, (-1, 2))
    even, odd = turned[..., 0], turned[..., 1]
    out = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)
    return torch.cat((plain, out.to(x.dtype)), dim=-1)


def hadamard(size: int) -> Tensor:
    """The orthogonal Sylvester-Hadamard matrix (size, size) f32, size a power of two."""
    matrix = torch.ones(1, 1)
    while matrix.shape[0] < size:
        matrix = torch.cat((torch.cat((matrix, matrix), 1), torch.cat((matrix, -matrix), 1)), 0)
    return matrix * size**-0.5
