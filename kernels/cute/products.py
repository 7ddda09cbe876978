"""The matrix products of a decode step on the CuTe DSL kernels: `step_operations`, at the speed of memory.

Up to 8 rows a launch; more are done 8 at a time. Activations may be bfloat16, half or float32 and are
multiplied as halves (as bfloat16 with bfloat16 weights); sums and results are float32.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4chat.kernels.cute.arrange import UNIT, Matrix
from dsv4chat.kernels.cute.driver import Address, Number, Real, address
from dsv4chat.kernels.cute.machine import Machine

MOST_ROWS = 8
THREADS = 256
ROUND_COST = 0.5  # what ending a tile takes, in units
WARPS = 8
SUMS_BYTES = 4096  # shared memory in which a block's warps add up
STAGE_BYTES = 2304  # and what a warp's stage takes
STAGES_DOWN, BLOCKS_DOWN = 4, 2
# Per format: stages of a warp, and blocks of a multiprocessor at a time.
STAGES = {"nvfp4": 4, "fp8": 5, "bf16": 5}
BLOCKS = {"nvfp4": 2, "fp8": 2, "bf16": 2}
LINE_BYTES = 128
MOST_AHEAD = 1 << 22
MOST_PICKS = 32
PICK_BITS = 20
ZEROS_BYTES = 512  # beside one row of activations with NVFP4
PICKS_BYTES = 8 * MOST_PICKS  # in which `down` keeps the picks' experts and factors
KINDS = {torch.bfloat16: 0, torch.float16: 1, torch.float32: 2}


def shared_bytes(format: str, units: int, rows: int) -> int:
    """Shared memory of a block: the sums, the stages, and `rows` rows of activations."""
    zeros = ZEROS_BYTES if rows == 1 and format == "nvfp4" else 0
    return SUMS_BYTES + WARPS * STAGES[format] * STAGE_BYTES + rows * (units * UNIT[format] * 2 + 64) + zeros


def split(machine: Machine, tiles: int, units: int, slots: int, shared: int, most: int) -> tuple[int, int]:
    """As `shared_out`, for each of `slots` matrices. most: blocks a multiprocessor takes by its registers."""
    return shared_out(max(1, machine.blocks_at_once(shared, most) // slots), tiles, units)


def shared_out(blocks: int, tiles: int, units: int) -> tuple[int, int]:
    """(how many of `blocks` to use, logarithm of how many warps share a tile), so that the last round is as
    full as can be.
    """
    best = (0.0, 1, 0)
    for bits in (3, 2, 1, 0):
        wk = 1 << bits
        if wk > units:
            continue
        at_once = WARPS // wk
        used = min(blocks, -(-tiles // at_once))
        rounds = -(-tiles // (used * at_once))
        cost = rounds * (-(-units // wk) + ROUND_COST)
        if best[0] == 0 or cost < best[0]:
            best = (cost, used, bits)
    return best[1], best[2]


@dataclass(frozen=True)
class Portions:
    """How blocks share the tiles of a matrix with one row of activations: `portion` each, of the first `rest`
    blocks one more; cut: units instead of tiles, so that a result comes in two parts. Without blocks: as with
    several rows.
    """

    blocks: int
    portion: int
    rest: int
    cut: bool = False

    @staticmethod
    def of(blocks: int, tiles: int, units: int, cut: bool = False) -> "Portions":
        """For up to `blocks` blocks; cut: whether that is allowed, where whole tiles come out uneven."""
        blocks = min(blocks, tiles)
        if cut and tiles % blocks:
            return Portions(blocks, *divmod(tiles * units, blocks), cut=True)
        blocks = -(-tiles // -(-tiles // blocks))  # as few as end with the others
        return Portions(blocks, *divmod(tiles, blocks))

    @staticmethod
    def for_one_row(
        matrix: Matrix, blocks: int, cut: bool = False, a_tile: int = 16, rows: int | None = None
    ) -> "Portions":
        """Of up to `blocks` blocks: `one_row` is for NVFP4, and for what is cut. a_tile: rows of a tile, of
        `rows` instead of all.
        """
        cut = cut and matrix.format in ("fp8", "nvfp4")
        share = Portions.of(blocks, -(-(rows or matrix.rows) // a_tile), matrix.units, cut)
        return share if share.cut or matrix.format == "nvfp4" else Portions(0, 0, 0)

    def kernel(self, matrix: Matrix, family: str) -> str:
        """Name of the kernel."""
        return matrix.kernel(family) + ("_one" if self.blocks else "")

    @property
    def numbers(self) -> list[Number]:
        """As a kernel's arguments."""
        return [Number(self.portion), Number(self.rest)]


class Linear:
    """`step_operations.Linear`: one launch for each part."""

    settles = True

    def __init__(self, machine: Machine, parts: Sequence[Matrix]) -> None:
        self.machine = machine
        self.parts = list(parts)
        self.rows = sum(part.rows for part in parts)
        self.takes_halves = all(part.format != "bf16" for part in parts)

    def __call__(
        self,
        x: Tensor,
        out: Tensor | None = None,
        ahead: Sequence[Tensor] = (),
        settle: bool = False,
        parts: bool = False,
    ) -> Tensor:
        """parts: of one row the result may come as two, to be added up."""
        if parts and out is None and x.shape[0] == 1 and len(self.parts) == 1:
            return launch_in_parts(self.machine, self.parts[0], x, ahead, settle)
        out = x.new_empty((x.shape[0], self.rows), dtype=torch.float32) if out is None else out
        start = 0
        for part in self.parts:
            here = out[:, start : start + part.rows]
            launch_linear(self.machine, part, x, here, slots=1, ahead=ahead, settle=settle)
            start += part.rows
        return out


class Grouped:
    """`step_operations.Grouped`: one launch, a slot a group."""

    def __init__(self, machine: Machine, matrices: Matrix) -> None:
        self.machine, self.matrices = machine, matrices

    def __call__(self, x: Tensor, out: Tensor | None = None, halves: bool = False) -> Tensor:
        """halves: the result is float16, cut to its range."""
        groups = self.matrices.count
        if out is None:
            kind = torch.float16 if halves else torch.float32
            out = x.new_empty((x.shape[0], groups * self.matrices.rows), dtype=kind)
        launch_linear(self.machine, self.matrices, x, out, slots=groups)
        return out


def _lines(tensor: Tensor) -> int:
    """Lines of L2 to prefetch."""
    return min(tensor.nbytes, MOST_AHEAD) // LINE_BYTES


def prefetched(tensors: Sequence[Tensor]) -> tuple[list[Address], list[Number]]:
    """Where two tensors begin, and how many lines of each to prefetch."""
    none = 2 - len(tensors)
    return (
        [address(tensor) for tensor in tensors] + [Address(0)] * none,
        [Number(_lines(tensor)) for tensor in tensors] + [Number(0)] * none,
    )


def portions(machine: Machine, matrix: Matrix, slots: int = 1, cut: bool = False) -> Portions:
    """For one row of activations with each of `slots` matrices."""
    shared = shared_bytes(matrix.format, matrix.units, 1)
    blocks = max(1, machine.blocks_at_once(shared, BLOCKS[matrix.format]) // slots)
    return Portions.for_one_row(matrix, blocks, cut)


def launch_in_parts(
    machine: Machine, matrix: Matrix, x: Tensor, ahead: Sequence[Tensor] = (), settle: bool = False
) -> Tensor:
    """x (1, columns) -> (1, rows) or (2, rows) float32, to be added up: all blocks work to the end."""
    count = 2 if portions(machine, matrix, cut=True).cut else 1
    out = x.new_empty((count, matrix.rows), dtype=torch.float32)
    launch_linear(machine, matrix, x, out, slots=1, ahead=ahead, settle=settle)
    return out


def launch_linear(
    machine: Machine,
    matrix: Matrix,
    x: Tensor,
    out: Tensor,
    slots: int,
    ahead: Sequence[Tensor] = (),
    settle: bool = False,
) -> None:
    """out (n, slots * rows), unit stride along a row; x (n, slots * columns); ahead: up to two tensors. With
    one row of x, out may be the two rows of `launch_in_parts`.
    """
    addresses, lines = prefetched(ahead)
    x = x if x.stride(-1) == 1 else x.contiguous()
    tiles = -(-matrix.rows // 16)
    most = machine.most_rows(lambda rows: shared_bytes(matrix.format, matrix.units, rows), MOST_ROWS)
    for first in range(0, x.shape[0], most):
        rows = min(most, x.shape[0] - first)
        shared = shared_bytes(matrix.format, matrix.units, rows)
        blocks, wk_bits = split(machine, tiles, matrix.units, slots, shared, BLOCKS[matrix.format])
        share = Portions(0, 0, 0)
        if rows == 1:
            share = portions(machine, matrix, slots, cut=out.shape[0] > x.shape[0])
        arguments = [
            address(x[first:]), address(out[first:]),
            address(matrix.codes), address(matrix.scales), address(matrix.factors),
            Address(matrix.codes_bytes), Address(matrix.scales_bytes), *addresses,
            Number(KINDS[x.dtype]), Number(x.stride(0)), Number(matrix.columns), Number(out.stride(0)),
            Number(matrix.rows), Number(rows), Number(matrix.columns), Number(wk_bits), *share.numbers,
            Number(share.cut), *lines, Number(settle), Number(out.dtype == torch.float16),
        ]  # fmt: skip
        grid = (share.blocks or blocks, slots)
        machine.launch(share.kernel(matrix, "linear"), grid, THREADS, shared, arguments)


class Experts:
    """`step_operations.Experts`: one launch into the hidden layer, one out of it."""

    settles = True

    def __init__(self, machine: Machine, gate_up: Matrix, down: Matrix, limit: float) -> None:
        self.machine, self.gate_up, self.down, self.limit = machine, gate_up, down, limit
        self.inner = down.columns
        # The kernel takes one factor an expert.
        self.down_factors = None if down.factors is None else down.factors[..., 0].contiguous()

    def __call__(
        self,
        x: Tensor,
        ids: Tensor | None = None,
        weights: Tensor | None = None,
        add: Tensor | None = None,
        out: Tensor | None = None,
        ahead: Tensor | None = None,
        settled: bool = False,
        parts: bool = False,
    ) -> Tensor:
        """add: (n, d), of one row perhaps in two parts; parts: as in `Linear`."""
        n, picks = x.shape[0], 1 if ids is None else ids.shape[1]
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
        shared = (
            SUMS_BYTES
            + WARPS * STAGES_DOWN * STAGE_BYTES
            + PICKS_BYTES
            + units * UNIT[matrix.format] * 2
            + ZEROS_BYTES
        )
        most = max(1, self.machine.blocks_at_once(shared, BLOCKS_DOWN) // n)
        share = Portions.of(most, -(-matrix.rows // 16), units, cut=parts and n == 1 and out is None)
        if out is None:
            out = x.new_empty((2 if share.cut else n, matrix.rows), dtype=torch.float32)
        add_stride = matrix.rows if add is not None and add.shape[0] > n else 0
        arguments = [
            address(hidden), address(out), address(add), address(ids),
            address(matrix.codes), address(matrix.scales), address(self.down_factors),
            Address(matrix.codes_bytes), Address(matrix.scales_bytes), address(ahead),
            Number(picks), Number(matrix.rows), Number(matrix.columns), *share.numbers, Number(share.cut),
            Number(add_stride), Number(-(-(1 << PICK_BITS) // matrix.units)),
            Number(0 if ahead is None else _lines(ahead)), Number(settled),
        ]  # fmt: skip
        self.machine.launch(matrix.kernel("down"), (share.blocks, n), THREADS, shared, arguments)
        return out

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
