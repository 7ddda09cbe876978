"""`gate_up`: the routed experts of one or more tokens, chosen on the device, into their hidden layers.

    hidden[slot, row] = silu(min(w1 x, limit)) * clip(w3 x, -limit, limit) * weight

w3 lies `up` rows below w1 in the same matrix. A tile is 8 rows of w1 with the same 8 rows of w3, so that a
lane ends up with both. Slot s is pick s % picks of token s // picks. Without ids the expert is 0: that is how
a shared expert runs, with all tokens in one slot (rows > 1).

one: for one row of activations, by `one_row`. settled: x and ids were there before the kernel launched last
let this one start, so that it may ask for them and for weights before the kernel before it ends.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import activations, arithmetic, barriers, gemv, one_row, ptx, runs
from dsv4chat.kernels.cute.hosting import host
from dsv4chat.kernels.cute.units import STAGE_BYTES, rows_at, units_of


@cute.jit
def _expert(ids: Int64, slot: Int32) -> Int32:
    chosen = Int32(0)
    if ids != 0:
        chosen = ptx.load_shared_by_all(ids + slot.to(Int64) * 4)
    return chosen


@cute.jit
def _store_hidden(
    hidden: Int64,
    weights: Int64,
    slot: Int32,
    inner: Int32,
    row: Int32,
    column: Int32,
    rows: Int32,
    limit: Float32,
    sums: list[Float32],
):
    """`row` of h for activation rows `column` and column + 1, as halves."""
    for i in cutlass.range_constexpr(2):
        n = column + i
        if (row < inner) & (n < rows):
            place = (slot + n).to(Int64)
            value = arithmetic.swiglu(sums[i], sums[2 + i], limit)
            if weights != 0:
                value = value * ptx.load_f32(weights + place * 4)
            ptx.store_f16(hidden + (place * inner.to(Int64) + row.to(Int64)) * 2, value)


@cute.jit
def enter(
    fmt: cutlass.Constexpr,
    exact: cutlass.Constexpr,
    one: cutlass.Constexpr,
    x: Int64,
    hidden: Int64,
    ids: Int64,
    weights: Int64,
    codes: Int64,
    scales: Int64,
    factors: Int64,
    codes_expert: Int64,
    scales_expert: Int64,
    factors_expert: Int32,
    up: Int32,
    x_kind: Int32,
    x_stride: Int32,
    rows: Int32,
    picks: Int32,
    inner: Int32,
    k: Int32,
    wk_bits: Int32,
    portion: Int32,
    rest: Int32,
    settled: Int32,
    limit: Float32,
    slot: Int32,
    block: Int32,
    blocks: Int32,
):
    """The work of block `block` of `blocks` that share a slot's matrix."""
    tid, _, _ = cute.arch.thread_idx()
    lane = tid & 31
    g = lane >> 2
    t = lane & 3
    shared = cute.arch.get_dyn_smem(Int32, alignment=128).toint()
    units = units_of(fmt, k)
    sums = one_row.sums_bytes(fmt, units) if one else gemv.SUMS_BYTES
    x_shared = shared + sums + gemv.WARPS * fmt.stages * STAGE_BYTES
    x_row_bytes = units * (fmt.unit * 2) + 64
    cute.arch.griddepcontrol_launch_dependents()
    source = x + ((slot // picks) * x_stride).to(Int64) * activations.x_bytes(x_kind)
    early = Int32(0)
    if cutlass.const_expr(one and exact):
        early = ((settled != 0) & (x_kind < 2) & (k <= activations.MOST_EARLY)).to(Int32)
    if (ids != 0) & (settled == 0):
        cute.arch.griddepcontrol_wait()
    expert = _expert(ids, slot)
    words = cute.make_rmem_tensor((4 * activations.AT_ONCE,), Int32)
    if early != 0:
        # A multiprocessor's loads come in order: no warp asks for weights before all have their expert's
        # number and have asked for x.
        activations.read_early(fmt, words, source, units)
        barriers.wait_with((expert < 0).to(Int32))
    matrix = codes + expert.to(Int64) * codes_expert
    matrix_scales = scales + expert.to(Int64) * scales_expert

    def locate(tile: Any, unit: Any) -> Any:
        def row(r: Any) -> Any:
            number = cutlass.min(tile * 8 + (r & 7), inner - 1)
            return matrix, matrix_scales, number + (r >> 3) * up

        return rows_at(fmt, exact, lane, row, (unit, k, units))

    def begin() -> None:
        if early != 0:
            activations.stage_early(fmt, words, x_kind, x_shared, units)
        cute.arch.griddepcontrol_wait()
        if early == 0:
            activations.stage(fmt, source, x_kind, x_stride, rows, k, x_shared, x_row_bytes, units)
        cute.arch.sync_threads()

    def hold(tile: Any) -> Any:
        row = expert * factors_expert + cutlass.min(tile * 8 + g, inner - 1)
        return [gemv.load_factor(factors, row), gemv.load_factor(factors, row + up)]

    def store(tile: Any, sums: Any, held: Any) -> None:
        values = [sums[i] * held[i // 2] for i in range(4)]
        _store_hidden(hidden, weights, slot, inner, tile * 8 + g, t * 2, rows, limit, values)

    if cutlass.const_expr(one):
        run = runs.run_of(block, (portion, rest, Int32(0)), units, k)

        def hold_row(tile: Any, row: Any) -> Any:
            number = expert * factors_expert + cutlass.min(tile * 8 + (row & 7), inner - 1)
            return gemv.load_factor(factors, number + (row >> 3) * up)

        def store_row(tile: Any, row: Any, total: Any, held: Any) -> None:
            own = total * held
            other = cute.arch.shuffle_sync_bfly(own, 8)
            there = run.holds(tile) & (row < 8)
            column = arithmetic.pick(there, Int32(0), rows)
            _store_hidden(
                hidden, weights, slot, inner, tile * 8 + row, column, rows, limit, [own, own, other, other]
            )

        one_row.walk(
            fmt, exact, fmt.stages, locate, begin, hold_row, None, store_row, run, shared, x_shared,
            x_shared + x_row_bytes, False,
        )  # fmt: skip
    else:
        work = gemv.Work((inner + 7) >> 3, units, k, wk_bits, block=block, blocks=blocks)
        gemv.walk(
            fmt, exact, fmt.stages, locate, begin, hold, store, work, shared, x_shared, x_row_bytes,
            rows,
        )  # fmt: skip


@cute.kernel
def _gate_up_kernel(
    fmt: cutlass.Constexpr,
    exact: cutlass.Constexpr,
    one: cutlass.Constexpr,
    x: Int64,
    hidden: Int64,
    ids: Int64,
    weights: Int64,
    codes: Int64,
    scales: Int64,
    factors: Int64,
    codes_expert: Int64,
    scales_expert: Int64,
    factors_expert: Int32,
    up: Int32,
    x_kind: Int32,
    x_stride: Int32,
    rows: Int32,
    picks: Int32,
    inner: Int32,
    k: Int32,
    wk_bits: Int32,
    portion: Int32,
    rest: Int32,
    settled: Int32,
    limit: Float32,
):
    block, slot, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    enter(
        fmt, exact, one, x, hidden, ids, weights, codes, scales, factors, codes_expert, scales_expert,
        factors_expert, up, x_kind, x_stride, rows, picks, inner, k, wk_bits, portion, rest, settled, limit,
        slot, block, blocks,
    )  # fmt: skip


def gate_up(fmt: Any, exact: bool, one: bool) -> Any:
    """The kernel's host side."""
    return host(_gate_up_kernel, gemv.THREADS, fmt, exact, one, blocks=fmt.blocks)
