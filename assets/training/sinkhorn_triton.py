"""Triton kernels of `sinkhorn`: one thread block handles `BLOCK` tokens, each matrix stays in registers.

Imported only where a GPU is used. The divisors are stored token-major, (N, steps, 4), as the plain version
does.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 64


@triton.jit
def _forward_kernel(logits, result, soft, divisors, count, eps, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = token < count
    row = tl.arange(0, 4)
    at = token[:, None, None] * 16 + row[None, :, None] * 4 + row[None, None, :]
    mask = inside[:, None, None]
    x = tl.load(logits + at, mask=mask, other=0.0)
    x = tl.exp(x - tl.max(x, axis=2)[:, :, None])
    x = x / tl.sum(x, axis=2)[:, :, None]
    tl.store(soft + at, x, mask=mask)
    x = x + eps
    line = divisors + token[:, None] * (STEPS * 4) + row[None, :]
    total = tl.sum(x, axis=1) + eps
    tl.store(line, total, mask=inside[:, None])
    x = x / total[:, None, :]
    for turn in range((STEPS - 1) // 2):
        total = tl.sum(x, axis=2) + eps
        tl.store(line + (2 * turn + 1) * 4, total, mask=inside[:, None])
        x = x / total[:, :, None]
        total = tl.sum(x, axis=1) + eps
        tl.store(line + (2 * turn + 2) * 4, total, mask=inside[:, None])
        x = x / total[:, None, :]
    tl.store(result + at, x, mask=mask)


@triton.jit
def _backward_kernel(gradient, result, soft, divisors, out, count, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = token < count
    row = tl.arange(0, 4)
    at = token[:, None, None] * 16 + row[None, :, None] * 4 + row[None, None, :]
    mask = inside[:, None, None]
    g = tl.load(gradient + at, mask=mask, other=0.0)
    x = tl.load(result + at, mask=mask, other=0.0)
    line = divisors + token[:, None] * (STEPS * 4) + row[None, :]
    for turn in range((STEPS - 1) // 2):
        total = tl.load(line + (STEPS - 1 - 2 * turn) * 4, mask=inside[:, None], other=1.0)
        g = (g - tl.sum(g * x, axis=1)[:, None, :]) / total[:, None, :]
        x = x * total[:, None, :]
        total = tl.load(line + (STEPS - 2 - 2 * turn) * 4, mask=inside[:, None], other=1.0)
        g = (g - tl.sum(g * x, axis=2)[:, :, None]) / total[:, :, None]
        x = x * total[:, :, None]
    total = tl.load(line, mask=inside[:, None], other=1.0)
    g = (g - tl.sum(g * x, axis=1)[:, None, :]) / total[:, None, :]
    s = tl.load(soft + at, mask=mask, other=0.0)
    g = s * (g - tl.sum(g * s, axis=2)[:, :, None])
    tl.store(out + at, g, mask=mask)


def forward(logits: Tensor, rounds: int, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """As `sinkhorn_forward`, for contiguous (N, 16) f32 on a GPU."""
    count, steps = logits.shape[0], 2 * rounds - 1
    result, soft = torch.empty_like(logits), torch.empty_like(logits)
    divisors = logits.new_empty(count, steps, 4)
    grid = (triton.cdiv(count, BLOCK),)
    _forward_kernel[grid](logits, result, soft, divisors, count, eps, STEPS=steps, BLOCK=BLOCK, num_warps=2)
    return result, soft, divisors


def backward(gradient: Tensor, result: Tensor, soft: Tensor, divisors: Tensor) -> Tensor:
    """As `sinkhorn_backward`, for contiguous (N, 16) f32 on a GPU."""
    count, steps = gradient.shape[0], divisors.shape[1]
    out = torch.empty_like(gradient)
    grid = (triton.cdiv(count, BLOCK),)
    _backward_kernel[grid](
        gradient, result, soft, divisors, out, count, STEPS=steps, BLOCK=BLOCK, num_warps=2
    )
    return out
