"""The matrix products of a decode step on the CuTe DSL kernels: `step_operations`, at the speed of memory.

Up to 8 rows a launch; more are done 8 at a time. Activations may be bfloat16, half or float32 and are
multiplied as halves (as bfloat16 with bfloat16 weights); sums and results are float32.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from dsv4chat.kernels.cute.arrange import UNIT, Matrix
from dsv4chat.kernels.cute.driver import Address, Number, address
from dsv4chat.kernels.cute.machine import Machine
from dsv4chat.kernels.cute.sharing import WARPS, Portions, split

MOST_ROWS = 8
THREADS = 256
SUMS_BYTES = 4096  # shared memory in which a block's warps add up, at least
STAGE_BYTES = 2304  # and what a warp's stage takes
# Per format: stages of a warp, and blocks of a multiprocessor at a time.
STAGES = {"nvfp4": 3, "fp8": 5, "bf16": 5}
BLOCKS = {"nvfp4": 2, "fp8": 2, "bf16": 2}
MOST_UNITS = 32  # with which FP8 and bfloat16 have room for twice the sums
LINE_BYTES = 128
MOST_AHEAD = 1 << 22
ZEROS_BYTES = 512  # beside one row of activations with NVFP4
KINDS = {torch.bfloat16: 0, torch.float16: 1, torch.float32: 2}


def sums_bytes(format: str, units: int) -> int:
    """Shared memory in which the warps of a block add up one row's products."""
    many = format == "nvfp4" or units <= MOST_UNITS
    return SUMS_BYTES * (2 if many else 1)


def shared_bytes(format: str, units: int, rows: int) -> int:
    """Shared memory of a block: the sums, the stages, and `rows` rows of activations."""
    sums = sums_bytes(format, units) if rows == 1 else SUMS_BYTES
    zeros = ZEROS_BYTES if rows == 1 and format == "nvfp4" else 0
    return sums + WARPS * STAGES[format] * STAGE_BYTES + rows * (units * UNIT[format] * 2 + 64) + zeros


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

    def first(self, rows: int) -> "Linear":
        """The first rows, in the same memory; perhaps some more."""
        kept, covered = [], 0
        for part in self.parts:
            if covered < rows:
                kept.append(part.first(rows - covered))
                covered += part.rows
        return Linear(self.machine, kept)


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


def prefetched(tensors: Sequence[Tensor]) -> tuple[list[Address], list[Number]]:
    """Where what is to be prefetched begins, and how many lines of it: two runs, neighbours count as one.
    What lies beyond them is left.
    """
    runs: list[tuple[int, int]] = []
    for tensor in tensors:
        start, size = tensor.data_ptr(), min(tensor.nbytes, MOST_AHEAD)
        if runs and runs[-1][1] == start:
            runs[-1] = (runs[-1][0], start + size)
        else:
            runs.append((start, start + size))
    runs = (runs + [(0, 0)] * 2)[:2]
    return [Address(start) for start, _ in runs], [Number(-(-(b - a) // LINE_BYTES)) for a, b in runs]


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
    """out (n, slots * rows), unit stride along a row; x (n, slots * columns); ahead: as in `prefetched`. With
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
