"""Several matrices with the same input, held as one and multiplied at once.

At batch 1 a projection is bound by its call and its weight bytes: one product over the stacked rows costs one
call, and reads the input once.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor


class Stack(Protocol):
    """Row-stacked matrices: sizes, the rows of each; weight (sum of sizes, in), the values of all."""

    sizes: list[int]

    @property
    def weight(self) -> Tensor: ...

    def __call__(self, x: Tensor) -> list[Tensor]:
        """x (n, in) -> one (n, size) view for each matrix."""


class Stacked:
    """A stack that is one plain tensor."""

    def __init__(self, weight: Tensor, sizes: Sequence[int]) -> None:
        self.weight = weight
        self.sizes = list(sizes)

    def __call__(self, x: Tensor) -> list[Tensor]:
        """x (n, in), cast to the weight's type -> one (n, size) view for each matrix."""
        return list(torch.split(F.linear(x.to(self.weight.dtype), self.weight), self.sizes, dim=1))


def product(x: Tensor, weight: Tensor) -> Tensor:
    """x (n, in) times weight (out, in), both of one type, float32 or bfloat16 -> (n, out) float32."""
    if x.dtype == torch.float32:
        return F.linear(x, weight)
    if x.device.type == "cuda":
        return torch.mm(x, weight.t(), out_dtype=torch.float32)
    return F.linear(x.float(), weight.float())


def products(x: Tensor, weights: Tensor) -> Tensor:
    """x (e, in), a row for each of the weights (e, out, in), types as in `product` -> (e, out) float32."""
    if x.dtype == torch.float32:
        return torch.bmm(weights, x[:, :, None])[:, :, 0]
    if x.device.type == "cuda":
        return torch.bmm(weights, x[:, :, None], out_dtype=torch.float32)[:, :, 0]
    return torch.bmm(weights.float(), x.float()[:, :, None])[:, :, 0]
