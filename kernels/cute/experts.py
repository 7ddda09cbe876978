"""The experts of a decode step on the CuTe DSL kernels: `step_operations.Experts`, at the speed of memory."""

from collections.abc import Sequence

import torch
from torch import Tensor

from dsv4chat.kernels.cute.arrange import UNIT, Matrix
from dsv4chat.kernels.cute.driver import Address, Number, Real, address
from dsv4chat.kernels.cute.machine import Machine
from dsv4chat.kernels.cute.products import (
    BLOCKS,
    KINDS,
    MOST_ROWS,
    STAGE_BYTES,
    THREADS,
    ZEROS_BYTES,
    launch_linear,
    prefetched,
    shared_bytes,
    sums_bytes,
)
from dsv4chat.kernels.cute.sharing import WARPS, Portions, split

STAGES_DOWN, BLOCKS_DOWN = 3, 2
MOST_PICKS = 32
PICK_BITS = 20
# In which `down` keeps where the picks' matrices begin, and their factors.
PICKS_BYTES = (16 + 4) * MOST_PICKS


class Experts:
    """`step_operations.Experts`: one launch into the hidden layer, one out of it."""

    settles = True

    def __init__(self, machine: Machine, gate_up: Matrix, down: Matrix, limit: float) -> None:
        self.machine, self.gate_up, self.down, self.limit = machine, gate_up, down, limit
        self.inner = down.columns
        # The kernel takes one factor an expert.
        self.down_factors = None if down.factors is None else down.factors[..., 0].contiguous()
        self.most_picks = machine.most_rows(self._down_bytes, MOST_PICKS)

    def __call__(
        self,
        x: Tensor,
        ids: Tensor | None = None,
        weights: Tensor | None = None,
        add: Tensor | None = None,
        out: Tensor | None = None,
        ahead: Sequence[Tensor] = (),
        settled: bool = False,
        parts: bool = False,
    ) -> Tensor:
        """add: (n, d), of one row perhaps in two parts; parts: as in `Linear`."""
        n, picks = x.shape[0], 1 if ids is None else ids.shape[1]
        if ids is not None and picks > self.most_picks:
            for first in range(0, picks, self.most_picks):
                some = slice(first, first + self.most_picks)
                shares = None if weights is None else weights[:, some].contiguous()
                add = self(x, ids[:, some].contiguous(), shares, add, out, ahead)
            assert add is not None
            return add
        hidden = x.new_empty((n * picks, self.inner), dtype=torch.float16)
        if ids is None:
            self._shared_in(x, hidden)
            if out is None:
                out = x.new_empty((n, self.down.rows), dtype=torch.float32)
            launch_linear(self.machine, self.down, hidden, out, slots=1, settle=True)
            return out if add is None else out.add_(add)
        self.enter(x, hidden, ids, weights, rows=1, picks=picks, settled=settled)
        matrix = self.down
        units = matrix.units * picks
        shared = self._down_bytes(picks)
        most = max(1, self.machine.blocks_at_once(shared, BLOCKS_DOWN) // n)
        share = Portions.of(most, -(-matrix.rows // 16), units, cut=parts and n == 1 and out is None)
        if out is None:
            out = x.new_empty((2 if share.cut else n, matrix.rows), dtype=torch.float32)
        add_stride = matrix.rows if add is not None and add.shape[0] > n else 0
        addresses, lines = prefetched(ahead)
        arguments = [
            address(hidden), address(out), address(add), address(ids),
            address(matrix.codes), address(matrix.scales), address(self.down_factors),
            Address(matrix.codes_bytes), Address(matrix.scales_bytes), *addresses,
            Number(picks), Number(matrix.rows), Number(matrix.columns), *share.numbers, Number(share.cut),
            Number(add_stride), Number(-(-(1 << PICK_BITS) // matrix.units)),
            *lines, Number(settled),
        ]  # fmt: skip
        self.machine.launch(matrix.kernel("down"), (share.blocks, n), THREADS, shared, arguments)
        return out

    def _down_bytes(self, picks: int) -> int:
        """Shared memory of a block of `down`."""
        matrix = self.down
        stages = WARPS * STAGES_DOWN * STAGE_BYTES
        hidden = picks * matrix.units * UNIT[matrix.format] * 2
        return sums_bytes(matrix.format, matrix.units) + stages + PICKS_BYTES + hidden + ZEROS_BYTES

    def _shared_in(self, x: Tensor, hidden: Tensor) -> None:
        matrix = self.gate_up
        most = self.machine.most_rows(lambda n: shared_bytes(matrix.format, matrix.units, n), MOST_ROWS)
        for first in range(0, x.shape[0], most):
            rows = min(most, x.shape[0] - first)
            self.enter(x[first : first + rows], hidden[first:], None, None, rows=rows, picks=1)

    def enter(
        self,
        x: Tensor,
        hidden: Tensor,
        ids: Tensor | None,
        weights: Tensor | None,
        rows: int,
        picks: int,
        settled: bool = False,
    ) -> None:
        """gate_up: with ids a slot for each row and pick, without them one slot of `rows` rows."""
        settled = settled and x.stride(-1) == 1  # a copy would come too late
        x = x if x.stride(-1) == 1 else x.contiguous()
        matrix = self.gate_up
        slots = 1 if ids is None else ids.numel()
        shared = shared_bytes(matrix.format, matrix.units, rows)
        blocks, wk_bits = split(
            self.machine, -(-self.inner // 8), matrix.units, slots, shared, BLOCKS[matrix.format]
        )
        most = max(1, self.machine.blocks_at_once(shared, BLOCKS[matrix.format]) // slots)
        share = Portions(0, 0, 0)
        if rows == 1:
            share = Portions.for_one_row(matrix, most, a_tile=8, rows=self.inner)
        arguments = [
            address(x), address(hidden), address(ids), address(weights),
            address(matrix.codes), address(matrix.scales), address(matrix.factors),
            Address(matrix.codes_bytes), Address(matrix.scales_bytes),
            Number(0 if matrix.factors is None else matrix.factors.shape[-1]), Number(self.inner),
            Number(KINDS[x.dtype]), Number(x.stride(0)), Number(rows), Number(picks),
            Number(self.inner), Number(matrix.columns), Number(wk_bits), *share.numbers, Number(settled),
            Real(self.limit),
        ]  # fmt: skip
        grid = (share.blocks or blocks, slots)
        self.machine.launch(share.kernel(matrix, "gate_up"), grid, THREADS, shared, arguments)


def one_factor_each(down: Matrix) -> bool:
    """Whether all rows of an expert have the same factor, as an NVFP4 matrix of a checkpoint has."""
    return down.factors is None or bool((down.factors == down.factors[..., :1]).all())
