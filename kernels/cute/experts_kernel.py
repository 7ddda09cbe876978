"""The routed experts of one or more tokens, chosen on the device: two launches.

    gate_up   hidden[slot, row] = silu(min(w1 x, limit)) * clip(w3 x, -limit, limit) * weight
    down      out[n, row] = add[n, row] + sum over picks of w2[expert] hidden[n * picks + pick]

w3 lies `up` rows below w1 in the same matrix.

A tile of gate_up is 8 rows of w1 with the same 8 rows of w3, so that a lane ends up with both. Slot s is pick
s % picks of token s // picks. Without ids the expert is 0: that is how a shared expert runs, with all
tokens in one slot (rows > 1). down takes the picks as further columns of one long row.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import gemv, ptx

STAGES = 3
STAGES_DOWN = 3  # beside the hidden layers of all picks
LOG2_E = 1.4426950408889634


def _swiglu(gate: Any, up: Any, limit: Any) -> Any:
    return ptx.asm(
        "{ .reg .f32 g, u, e; min.f32 g, $1, $3; min.f32 u, $2, $3; neg.f32 e, $3; max.f32 u, u, e;\n"
        f"mul.f32 e, g, 0f{_hex(-LOG2_E)}; ex2.approx.f32 e, e; add.f32 e, e, 0f3F800000;\n"
        "div.rn.f32 e, g, e; mul.f32 $0, e, u; }",
        [Float32],
        [gate, up, limit],
    )


def _hex(value: float) -> str:
    import struct

    return struct.pack(">f", value).hex().upper()


@cute.jit
def _expert(ids: Int64, slot: Int32) -> Int32:
    chosen = Int32(0)
    if ids != 0:
        chosen = ptx.load_32(ids + slot.to(Int64) * 4)
    return chosen


@cute.jit
def _store_hidden(
    hidden: Int64,
    weights: Int64,
    factors: Int64,
    up: Int32,
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
            gate = sums[i]
            more = sums[2 + i]
            if factors != 0:
                gate = gate * ptx.load_f32(factors + row.to(Int64) * 4)
                more = more * ptx.load_f32(factors + (row + up).to(Int64) * 4)
            value = _swiglu(gate, more, limit)
            if weights != 0:
                value = value * ptx.load_f32(weights + place * 4)
            ptx.store_f16(hidden + (place * inner.to(Int64) + row.to(Int64)) * 2, value)


@cute.kernel
def _gate_up_kernel(
    fmt: cutlass.Constexpr,
    exact: cutlass.Constexpr,
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
    wk: Int32,
    limit: Float32,
):
    _, slot, _ = cute.arch.block_idx()
    tid, _, _ = cute.arch.thread_idx()
    lane = tid & 31
    g = lane >> 2
    t = lane & 3
    shared = cute.arch.get_dyn_smem(Int32, alignment=128).toint()
    x_shared = shared + gemv.SUMS_BYTES + gemv.WARPS * STAGES * gemv.STAGE_BYTES
    units = (k + (fmt.unit - 1)) // fmt.unit
    x_row_bytes = units * (fmt.unit * 2) + 64
    cute.arch.griddepcontrol_launch_dependents()
    if ids != 0:
        cute.arch.griddepcontrol_wait()
    expert = _expert(ids, slot).to(Int64)
    matrix = codes + expert * codes_expert
    matrix_scales = scales + expert * scales_expert

    def locate(tile: Any, unit: Any) -> Any:
        def row(r: Any) -> Any:
            number = cutlass.min(tile * 8 + (r & 7), inner - 1)
            return matrix, matrix_scales, number + (r >> 3) * up

        return gemv.rows_at(fmt, lane, row, (unit, k, units))

    def begin() -> None:
        cute.arch.griddepcontrol_wait()
        source = x + ((slot // picks) * x_stride).to(Int64) * gemv.x_bytes(x_kind)
        gemv.stage(fmt, source, x_kind, x_stride, rows, k, x_shared, x_row_bytes, units)
        cute.arch.sync_threads()

    def store(tile: Any, sums: Any) -> None:
        here = gemv.further(factors, expert * factors_expert.to(Int64) * 4)
        _store_hidden(hidden, weights, here, up, slot, inner, tile * 8 + g, t * 2, rows, limit, sums)

    tiles = (inner + 7) // 8
    gemv.walk(
        fmt, exact, STAGES, locate, begin, None, store, tiles, units, units, k, wk,
        shared, x_shared, x_row_bytes, rows,
    )  # fmt: skip


@cute.jit
def gate_up(
    fmt: cutlass.Constexpr,
    exact: cutlass.Constexpr,
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
    wk: Int32,
    limit: Float32,
):
    _gate_up_kernel(
        fmt,
        exact,
        x,
        hidden,
        ids,
        weights,
        codes,
        scales,
        factors,
        codes_expert,
        scales_expert,
        factors_expert,
        up,
        x_kind,
        x_stride,
        rows,
        picks,
        inner,
        k,
        wk,
        limit,
    ).launch(
        grid=(1, 1, 1), block=(gemv.THREADS, 1, 1), min_blocks_per_mp=gemv.BLOCKS, preferred_smem_carveout=100
    )


@cute.jit
def _store_sum(
    out: Int64, add: Int64, token: Int32, d: Int32, row: Int32, column: Int32, sums: list[Float32]
):
    """Rows `row` and row + 8 of the sum, held by the lanes of column 0."""
    for i in cutlass.range_constexpr(2):
        here = row + 8 * i
        if (here < d) & (column == 0):
            place = (token.to(Int64) * d.to(Int64) + here.to(Int64)) * 4
            value = sums[2 * i]
            if add != 0:
                value = value + ptx.load_f32(add + place)
            ptx.store_f32(out + place, value)


@cute.kernel
def _down_kernel(
    fmt: cutlass.Constexpr,
    exact: cutlass.Constexpr,
    hidden: Int64,
    out: Int64,
    add: Int64,
    ids: Int64,
    codes: Int64,
    scales: Int64,
    factors: Int64,
    codes_expert: Int64,
    scales_expert: Int64,
    picks: Int32,
    d: Int32,
    k: Int32,
    wk: Int32,
):
    _, token, _ = cute.arch.block_idx()
    tid, _, _ = cute.arch.thread_idx()
    lane = tid & 31
    g = lane >> 2
    t = lane & 3
    shared = cute.arch.get_dyn_smem(Int32, alignment=128).toint()
    x_shared = shared + gemv.SUMS_BYTES + gemv.WARPS * STAGES_DOWN * gemv.STAGE_BYTES
    units = (k + (fmt.unit - 1)) // fmt.unit
    x_row_bytes = units * (fmt.unit * 2)
    cute.arch.griddepcontrol_launch_dependents()
    # The experts' numbers come from the kernel before, or from one whose end that one awaited.
    cute.arch.griddepcontrol_wait()

    def expert(unit: Any) -> Any:
        return ptx.load_32(ids + (token * picks + unit // units).to(Int64) * 4).to(Int64)

    def locate(tile: Any, unit: Any) -> Any:
        chosen = expert(unit)

        def row(r: Any) -> Any:
            number = cutlass.min(tile * 16 + r, d - 1)
            return codes + chosen * codes_expert, scales + chosen * scales_expert, number

        return gemv.rows_at(fmt, lane, row, (unit % units, k, units))

    def begin() -> None:
        source = hidden + (token * picks).to(Int64) * k.to(Int64) * 2
        gemv.stage(fmt, source, Int32(1), k, picks, k, x_shared, x_row_bytes, units)
        cute.arch.sync_threads()

    def factor(tile: Any, unit: Any) -> Any:
        if cutlass.const_expr(fmt is not gemv.NVFP4):
            return [Float32(1.0)] * 4
        row = tile * 16 + g
        here = factors + expert(unit) * d.to(Int64) * 4
        low = ptx.load_f32(here + cutlass.min(row, d - 1).to(Int64) * 4)
        high = ptx.load_f32(here + cutlass.min(row + 8, d - 1).to(Int64) * 4)
        return [low, low, high, high]

    def store(tile: Any, sums: Any) -> None:
        _store_sum(out, add, token, d, tile * 16 + g, t * 2, sums)

    tiles = (d + 15) // 16
    gemv.walk(
        fmt, exact, STAGES_DOWN, locate, begin, factor, store, tiles, units * picks, units, k, wk,
        shared, x_shared, Int32(0), Int32(1),
    )  # fmt: skip


@cute.jit
def down(
    fmt: cutlass.Constexpr,
    exact: cutlass.Constexpr,
    hidden: Int64,
    out: Int64,
    add: Int64,
    ids: Int64,
    codes: Int64,
    scales: Int64,
    factors: Int64,
    codes_expert: Int64,
    scales_expert: Int64,
    picks: Int32,
    d: Int32,
    k: Int32,
    wk: Int32,
):
    _down_kernel(
        fmt,
        exact,
        hidden,
        out,
        add,
        ids,
        codes,
        scales,
        factors,
        codes_expert,
        scales_expert,
        picks,
        d,
        k,
        wk,
    ).launch(grid=(1, 1, 1), block=(gemv.THREADS, 1, 1), min_blocks_per_mp=2, preferred_smem_carveout=100)
