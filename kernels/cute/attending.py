"""Attention of one token on the CuTe DSL kernels: `step_operations.Attention` in two launches."""

import torch
from torch import Tensor

from dsv4chat.kernels.cute.driver import Number, Real, address
from dsv4chat.kernels.cute.machine import Machine
from dsv4chat.kernels.kv_rows import Fp8Rows, Rows
from dsv4chat.kernels.step_operations import AttentionSizes

HEAD_DIM = 512
ROPE_DIM = 64
HEADS = 16  # a block's
ROWS = 64  # that a block takes at a time
THREADS = 256
MERGE_THREADS = HEAD_DIM
MERGE_BYTES = 16 * MERGE_THREADS
SHARED_BYTES = 98752


def fits(sizes: AttentionSizes, rows: Rows) -> bool:
    """Whether the kernels take these sizes and this storage."""
    return (
        isinstance(rows, Fp8Rows)
        and sizes.head_dim == HEAD_DIM
        and rows.rope_bytes == 2 * ROPE_DIM
        and sizes.sink.shape[0] % HEADS == 0
    )


class Attention:
    """`step_operations.Attention` over FP8 rows of 448 + 64 channels, heads a multiple of 16; out are
    halves.
    """

    def __init__(self, machine: Machine, sizes: AttentionSizes) -> None:
        self.machine, self.sizes = machine, sizes
        self.sink = sizes.sink.float().contiguous()

    def __call__(
        self,
        query: Tensor,
        rotation: Tensor,
        position: Tensor,
        ring: Tensor,
        blocks: Tensor | None = None,
        chosen: Tensor | None = None,
        settled: bool = False,
    ) -> Tensor:
        s, heads = self.sizes, self.sizes.sink.shape[0]
        query = query.float().contiguous()
        count = 0 if blocks is None else blocks.shape[0] if chosen is None else chosen.numel()
        groups, steps = heads // HEADS, -(-(s.window + count) // ROWS)
        parts = min(steps, max(1, 2 * self.machine.processors // groups))
        share = -(-steps // parts)
        parts = -(-steps // share)
        sums = query.new_empty(parts, heads, HEAD_DIM)
        tops = query.new_empty(parts, heads, 2)
        out = torch.empty(1, heads * HEAD_DIM, dtype=torch.float16, device=query.device)
        self.machine.launch(
            "attention_partial", (parts, groups), THREADS, SHARED_BYTES,
            [
                address(query), address(rotation), address(ring), address(blocks), address(chosen),
                address(position), address(sums), address(tops), Number(s.window), Number(count),
                Number(s.ratio), Number(heads), Number(share * ROWS), Number(settled),
                Real(HEAD_DIM**-0.5), Real(s.norm_eps),
            ],
        )  # fmt: skip
        self.machine.launch(
            "attention_merge", (heads, 1), MERGE_THREADS, MERGE_BYTES,
            [
                address(sums), address(tops), address(self.sink), address(rotation), address(out),
                Number(heads), Number(parts),
            ],
        )  # fmt: skip
        return out
