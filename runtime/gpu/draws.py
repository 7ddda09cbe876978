"""The random numbers of `philox.uniform`, many steps at once on the device.

Philox multiplies 32-bit words to 64-bit products; int64 arithmetic wraps, and the bits are the same.
"""

import torch
from torch import Tensor

from dsv4chat.runtime import philox

_MASK = 0xFFFFFFFF


def uniforms(seed: int, first: int, count: int, device: torch.device) -> Tensor:
    """The draws of steps first..first + count: (count,) float64, equal to `philox.uniform` of each."""
    step = torch.arange(first, first + count, device=device)
    zero = torch.zeros_like(step)
    c0, c1, c2, c3 = step & _MASK, step >> 32, zero, zero
    k0, k1 = seed & _MASK, seed >> 32
    for _ in range(philox.ROUNDS):
        product_0, product_1 = c0 * philox.MULTIPLIER_0, c2 * philox.MULTIPLIER_1
        c0, c1, c2, c3 = (
            ((product_1 >> 32) & _MASK) ^ c1 ^ k0,
            product_1 & _MASK,
            ((product_0 >> 32) & _MASK) ^ c3 ^ k1,
            product_0 & _MASK,
        )
        k0, k1 = (k0 + philox.WEYL_0) & _MASK, (k1 + philox.WEYL_1) & _MASK
    return ((c0 << 21) | (c1 >> 11)).double() * 2.0**-53
