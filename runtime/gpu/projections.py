"""Matrices with one input, multiplied by the operations of the step and taken apart again."""

from collections.abc import Sequence

import torch
from torch import Tensor

from dsv4chat.kernels.cute.operations import Operations
from dsv4chat.kernels.linear import Stack
from dsv4chat.kernels.packed import as_packed_stack


class Projections:
    """The matrices of some stacks, in their order."""

    def __init__(self, operations: Operations, stacks: Sequence[Stack]) -> None:
        packed = [as_packed_stack(stack) for stack in stacks]
        self._groups = [(stack.dtype, operations.linear(stack.parts), stack.sizes) for stack in packed]

    def __call__(self, x: Tensor, ahead: Sequence[Tensor] = ()) -> list[Tensor]:
        """x (n, in) -> one (n, size) float32 view for each matrix. ahead: as in `step_operations.Linear`."""
        parts: list[Tensor] = []
        for dtype, linear, sizes in self._groups:
            parts += torch.split(linear(x.to(dtype), ahead=ahead), sizes, dim=1)
        return parts
