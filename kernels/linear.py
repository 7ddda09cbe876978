"""Several matrices with the same input, held as one and multiplied at once.

At batch 1 a projection is bound by its call and its weight bytes: one product over the stacked rows costs one
call, and reads the input once.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor


class Stacked:
    """Row-stacked matrices: weight (sum of sizes, in), sizes the rows of each."""

    def __init__(self, weight: Tensor, sizes: Sequence[int]) -> None:
        self.weight = weight
        self.sizes = list(sizes)

    def __call__(self, x: Tensor) -> list[Tensor]:
        """x (n, in), cast to the weight's type -> one (n, size) view for each matrix."""
        return list(torch.split(F.linear(x.to(self.weight.dtype), self.weight), self.sizes, dim=1))
