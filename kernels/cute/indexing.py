"""Which blocks a token attends to on the CuTe DSL kernels: `step_index.Index` in two launches."""

import torch
from torch import Tensor

from dsv4chat.kernels.cute.driver import Number, Real, address
from dsv4chat.kernels.cute.machine import Machine
from dsv4chat.kernels.kv_rows import Fp4Keys, Rows
from dsv4chat.kernels.step_index import IndexSizes

HEADS = 64
D = 128
THREADS = 256
WARPS = THREADS // 32
SCORES_SHARED = HEADS * (2 * D + 64) + HEADS * 4
CHOOSE_THREADS = 1024
CHOOSE_SHARED = 1296


def fits(sizes: IndexSizes, format: Rows) -> bool:
    """Whether the kernels take these sizes and this storage."""
    return isinstance(format, Fp4Keys) and sizes.heads == HEADS and sizes.d == D


class Index:
    """`step_index.Index` for 64 heads and 4-bit keys of 128."""

    def __init__(self, machine: Machine, sizes: IndexSizes) -> None:
        self.machine, self.sizes = machine, sizes

    def __call__(
        self, query: Tensor, weights: Tensor, rotation: Tensor, position: Tensor, keys: Tensor
    ) -> Tensor:
        s, count = self.sizes, keys.shape[0]
        query, weights = query.float().contiguous(), weights.float().contiguous()
        scores = query.new_empty(-(-count // 4) * 4)
        chosen = torch.empty(s.picks, dtype=torch.int64, device=query.device)
        blocks = min(2 * self.machine.processors, -(-count // (8 * WARPS)))
        self.machine.launch(
            "index_scores", (blocks, 1), THREADS, SCORES_SHARED,
            [
                address(query), address(weights), address(rotation), address(position), address(keys),
                address(scores), Number(s.ratio), Real(s.scale),
            ],
        )  # fmt: skip
        self.machine.launch(
            "index_choose", (1, 1), CHOOSE_THREADS, CHOOSE_SHARED,
            [address(scores), address(position), address(chosen), Number(s.ratio), Number(s.picks)],
        )  # fmt: skip
        return chosen
