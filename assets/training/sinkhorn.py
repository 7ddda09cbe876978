"""The mHC matrix: a softmax and Sinkhorn rounds on one 4x4 matrix for each token, with its gradient.

`sinkhorn(logits, rounds, eps)` maps (N, 16) f32 to (N, 16) f32 (row-major 4x4; other sizes likewise):
softmax over each row, + eps, then divide by (column sum + eps), then rounds - 1 times: divide by
(row sum + eps), divide by (column sum + eps).

A custom operator, so that the compiler sees one node instead of hundreds: Triton on a GPU, plain PyTorch
elsewhere. The divisions are invertible once the divisors are known, so the backward pass keeps only the
divisors (N, 2 * rounds - 1, 4) and walks the rounds back: for y = x / s with s = sum(x) + eps, dx = (dy -
sum(dy * y)) / s, and x = y * s.
"""

import torch
from torch import Tensor


def sinkhorn(logits: Tensor, rounds: int, eps: float) -> Tensor:
    """Nearly doubly stochastic matrices (N, n*n) f32 of logits (N, n*n) f32; columns sum to 1."""
    return torch.ops.dsv4chat_training.sinkhorn(logits, rounds, eps)[0]


def sinkhorn_forward(logits: Tensor, rounds: int, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Plain PyTorch: result (N, n*n), the softmax (N, n*n) and the divisors (N, 2 * rounds - 1, n)."""
    size = round(logits.shape[-1] ** 0.5)
    soft = logits.unflatten(-1, (size, size)).softmax(-1)
    matrix, divisors = soft + eps, []
    for step in range(2 * rounds - 1):
        axis = -2 if step % 2 == 0 else -1
        total = matrix.sum(axis, keepdim=True) + eps
        matrix = matrix / total
        divisors.append(total.flatten(-2))
    return matrix.flatten(-2), soft.flatten(-2), torch.stack(divisors, dim=1)


def sinkhorn_backward(gradient: Tensor, result: Tensor, soft: Tensor, divisors: Tensor) -> Tensor:
    """Gradient of the logits (N, n*n) from the gradient of the result."""
    size = divisors.shape[-1]
    grad, matrix = gradient.unflatten(-1, (size, size)), result.unflatten(-1, (size, size))
    for step in reversed(range(divisors.shape[1])):
        axis = -2 if step % 2 == 0 else -1
        total = divisors[:, step].unsqueeze(axis)
        grad = (grad - (grad * matrix).sum(axis, keepdim=True)) / total
        matrix = matrix * total
    soft = soft.unflatten(-1, (size, size))
    return (soft * (grad - (grad * soft).sum(-1, keepdim=True))).flatten(-2)


@torch.library.custom_op("dsv4chat_training::sinkhorn", mutates_args=())
def _forward(logits: Tensor, rounds: int, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    if logits.is_cuda:
        from dsv4chat.assets.training import sinkhorn_triton

        return sinkhorn_triton.forward(logits.contiguous(), rounds, eps)
    return sinkhorn_forward(logits, rounds, eps)


@_forward.register_fake
def _(logits: Tensor, rounds: int, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    size = round(logits.shape[-1] ** 0.5)
    divisors = logits.new_empty(logits.shape[0], 2 * rounds - 1, size)
    return torch.empty_like(logits), torch.empty_like(logits), divisors


@torch.library.custom_op("dsv4chat_training::sinkhorn_backward", mutates_args=())
def _backward(gradient: Tensor, result: Tensor, soft: Tensor, divisors: Tensor) -> Tensor:
    if gradient.is_cuda:
        from dsv4chat.assets.training import sinkhorn_triton

        return sinkhorn_triton.backward(gradient.contiguous(), result, soft, divisors)
    return sinkhorn_backward(gradient, result, soft, divisors)


@_backward.register_fake
def _(gradient: Tensor, result: Tensor, soft: Tensor, divisors: Tensor) -> Tensor:
    return torch.empty_like(gradient)


def _keep(ctx, inputs, output) -> None:
    ctx.save_for_backward(*output)


def _differentiate(ctx, gradient: Tensor, _soft: Tensor | None, _divisors: Tensor | None):
    result, soft, divisors = ctx.saved_tensors
    return torch.ops.dsv4chat_training.sinkhorn_backward(gradient, result, soft, divisors), None, None


_forward.register_autograd(_differentiate, setup_context=_keep)
