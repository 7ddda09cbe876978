"""The router on a CuTe DSL kernel: `step_operations.Router` in one launch."""

import torch
from torch import Tensor

from dsv4chat.kernels.cute.driver import Number, Real, address
from dsv4chat.kernels.cute.machine import Machine

MOST_EXPERTS = 512
MOST_PICKS = 32
THREADS = 256
SHARED_BYTES = 8 * MOST_EXPERTS


class Router:
    """`step_operations.Router`, for up to 512 experts and 32 picks; picks come highest first."""

    def __init__(
        self, machine: Machine, bias: Tensor | None, table: Tensor | None, picks: int, scaling: float
    ) -> None:
        self.machine, self.picks, self.scaling = machine, picks, scaling
        self.bias = None if bias is None else bias.float().contiguous()
        self.table = None if table is None else table.long().contiguous()

    def outputs(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Room for ids and weights."""
        shape = (logits.shape[0], self.picks)
        return torch.empty(shape, dtype=torch.int32, device=logits.device), logits.new_empty(shape)

    def __call__(self, logits: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        n, experts = logits.shape
        logits = logits.contiguous()
        ids, weights = self.outputs(logits)
        arguments = [
            address(logits), address(self.bias), address(self.table), address(tokens),
            address(ids), address(weights), Number(experts), Number(self.picks), Real(self.scaling),
        ]  # fmt: skip
        self.machine.launch("router", (n, 1), THREADS, SHARED_BYTES, arguments)
        return ids, weights
