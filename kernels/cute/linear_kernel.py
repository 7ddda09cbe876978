"""`linear`: out[n, row] = factor[row] * sum_k W[row, k] x[n, k], one matrix; with slots, slot s has its own
matrix, its own part of x and of out (grouped projections).

settle: the next kernel starts only when all before this one are complete, so that it need not wait for what
they made. Else it starts at once.

halves: the result is stored as halves, which a next product takes as they are; then nothing is split.

one: for one row of activations, by `one_row`: a block of a slot has `portion` tiles, of the first `rest`
blocks one more; with split those are units, and the result comes in two parts, the second out_stride behind
the first. Else it is `gemv` that does it, with wk_bits.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import activations, gemv, one_row, ptx, runs
from dsv4chat.kernels.cute.hosting import host
from dsv4chat.kernels.cute.prefetching import prefetch
from dsv4chat.kernels.cute.units import FP8, STAGE_BYTES, rows_at, units_of


@cute.jit
def _store(
    out: Int64,
    stride: Int32,
    first: Int32,
    row: Int32,
    last: Int32,
    column: Int32,
    rows: Int32,
    halves: Int32,
    sums: list[Float32],
):
    """Rows `row` and row + 8, of `first` on, of the product for activation rows `column` and column + 1."""
    for i in cutlass.range_constexpr(4):
        here = row + 8 * (i // 2)
        n = column + i % 2
        if (here < last) & (n < rows):
            place = n.to(Int64) * stride.to(Int64) + (first + here).to(Int64)
            if halves != 0:
                ptx.store_clipped_f16(out + place * 2, sums[i])
            else:
                ptx.store_f32(out + place * 4, sums[i])


@cute.jit
def product(
    fmt: cutlass.Constexpr,
    exact: cutlass.Constexpr,
    one: cutlass.Constexpr,
    x: Int64,
    out: Int64,
    codes: Int64,
    scales: Int64,
    factors: Int64,
    codes_slot: Int64,
    scales_slot: Int64,
    ahead: Int64,
    also_ahead: Int64,
    x_kind: Int32,
    x_stride: Int32,
    x_slot: Int32,
    out_stride: Int32,
    matrix_rows: Int32,
    rows: Int32,
    k: Int32,
    wk_bits: Int32,
    portion: Int32,
    rest: Int32,
    split: Int32,
    ahead_lines: Int32,
    also_lines: Int32,
    settle: Int32,
    halves: Int32,
    slot: Int32,
    block: Int32,
    blocks: Int32,
):
    """The work of block `block` of `blocks` that share a slot's matrix."""
    _, slots, _ = cute.arch.grid_dim()
    tid, _, _ = cute.arch.thread_idx()
    lane = tid & 31
    g = lane >> 2
    t = lane & 3
    shared = cute.arch.get_dyn_smem(Int32, alignment=128).toint()
    units = units_of(fmt, k)
    sums = one_row.sums_bytes(fmt, units) if one else gemv.SUMS_BYTES
    x_shared = shared + sums + gemv.WARPS * fmt.stages * STAGE_BYTES
    x_row_bytes = units * (fmt.unit * 2) + 64
    if settle == 0:
        cute.arch.griddepcontrol_launch_dependents()
    matrix = codes + slot.to(Int64) * codes_slot
    matrix_scales = scales + slot.to(Int64) * scales_slot
    first = slot * matrix_rows

    def locate(tile: Any, unit: Any) -> Any:
        def row(r: Any) -> Any:
            return matrix, matrix_scales, cutlass.min(tile * 16 + r, matrix_rows - 1)

        return rows_at(fmt, exact, lane, row, (unit, k, units))

    def begin() -> None:
        cute.arch.griddepcontrol_wait()
        if settle != 0:
            cute.arch.griddepcontrol_launch_dependents()
        source = x + (slot * x_slot).to(Int64) * activations.x_bytes(x_kind)
        activations.stage(fmt, source, x_kind, x_stride, rows, k, x_shared, x_row_bytes, units)
        worker, workers = slot * blocks + block, slots * blocks
        prefetch(ahead, ahead_lines, worker, workers, gemv.THREADS)
        prefetch(also_ahead, also_lines, worker, workers, gemv.THREADS)
        cute.arch.sync_threads()

    def hold(tile: Any) -> Any:
        row = tile * 16 + g
        two = [cutlass.min(row, matrix_rows - 1), cutlass.min(row + 8, matrix_rows - 1)]
        return [gemv.load_factor(factors, first + number) for number in two]

    def store(tile: Any, sums: Any, held: Any) -> None:
        values = [sums[i] * held[i // 2] for i in range(4)]
        _store(out, out_stride, first, tile * 16 + g, matrix_rows, t * 2, rows, halves, values)

    if cutlass.const_expr(one):
        run = runs.run_of(block, (portion, rest, split), units, k)

        def hold_row(tile: Any, row: Any) -> Any:
            return gemv.load_factor(factors, first + cutlass.min(tile * 16 + row, matrix_rows - 1))

        def store_row(tile: Any, row: Any, total: Any, held: Any) -> None:
            number = tile * 16 + row
            there = run.holds(tile) & (number < matrix_rows)
            place = (first + number).to(Int64)
            if halves != 0:
                if there:
                    ptx.store_clipped_f16(out + place * 2, total * held)
            else:
                runs.store_part(run, split, tile, there, out + place * 4, out_stride, total * held)

        one_row.walk(
            fmt, exact, fmt.stages, locate, begin, hold_row, None, store_row, run, shared, x_shared,
            x_shared + x_row_bytes, fmt is FP8,
        )  # fmt: skip
    else:
        work = gemv.Work((matrix_rows + 15) >> 4, units, k, wk_bits, block=block, blocks=blocks)
        gemv.walk(
            fmt, exact, fmt.stages, locate, begin, hold, store, work, shared, x_shared, x_row_bytes,
            rows,
        )  # fmt: skip


@cute.kernel
def _kernel(
    fmt: cutlass.Constexpr,
    exact: cutlass.Constexpr,
    one: cutlass.Constexpr,
    x: Int64,
    out: Int64,
    codes: Int64,
    scales: Int64,
    factors: Int64,
    codes_slot: Int64,
    scales_slot: Int64,
    ahead: Int64,
    also_ahead: Int64,
    x_kind: Int32,
    x_stride: Int32,
    x_slot: Int32,
    out_stride: Int32,
    matrix_rows: Int32,
    rows: Int32,
    k: Int32,
    wk_bits: Int32,
    portion: Int32,
    rest: Int32,
    split: Int32,
    ahead_lines: Int32,
    also_lines: Int32,
    settle: Int32,
    halves: Int32,
):
    block, slot, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    product(
        fmt, exact, one, x, out, codes, scales, factors, codes_slot, scales_slot, ahead, also_ahead, x_kind,
        x_stride, x_slot, out_stride, matrix_rows, rows, k, wk_bits, portion, rest, split, ahead_lines,
        also_lines, settle, halves, slot, block, blocks,
    )  # fmt: skip


def linear(fmt: Any, exact: bool, one: bool) -> Any:
    """The kernel's host side."""
    return host(_kernel, gemv.THREADS, fmt, exact, one, blocks=fmt.blocks)
