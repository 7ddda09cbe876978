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
        self._sizes = [stack.sizes for stack in packed]
        self._pair = None
        if len(packed) == 2 and packed[0].dtype == packed[1].dtype:
            self._pair = operations.pair(packed[0].parts, packed[1].parts)
        self._linears = []
        if self._pair is None:
            self._linears = [(stack.dtype, operations.linear(stack.parts)) for stack in packed]

    def __call__(self, x: Tensor, ahead: Sequence[Tensor] = ()) -> list[Tensor]:
        """x (n, in) -> one (n, size) float32 view for each matrix. ahead: as in `step_operations.Linear`."""
        results: Sequence[Tensor]
        if self._pair is not None:
            results = self._pair(x, ahead)
        else:
            results = [linear(x.to(dtype), ahead=ahead) for dtype, linear in self._linears]
        parts: list[Tensor] = []
        for result, sizes in zip(results, self._sizes, strict=True):
            parts += torch.split(result, sizes, dim=1)
        return parts
