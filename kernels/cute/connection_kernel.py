"""Hyper-connections around a sublayer, two launches for everything between two sublayers:

    mix     X'_j = post_j F + sum_i comb[i, j] X_i, stored; of each block of 32 columns its share of the
            mixes X' fn^T, of the products <X'_i, X'_j>, and max |X'|
    enter   the shares added up; pre, post and comb from them (Sinkhorn);
            x = RMSNorm(sum_i pre_i X'_i) * weight

The mean square of x needs no pass of its own: it is sum_ij pre_i pre_j <X'_i, X'_j> / d. Four streams. Shares
lie as (n, values, blocks) float32: mixes, then 10 products, then the maximum.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import ptx

STREAMS = 4
PAIRS = tuple((i, j) for i in range(STREAMS) for j in range(i, STREAMS))
COLUMNS = 32
THREADS = 256
WARPS = 8
ROWS_A_WARP = 3  # 24 mixes over 8 warps
EXTRA = len(PAIRS) + 1
VALUES_A_WARP = -(-(24 + EXTRA) // WARPS)


def _warp_sum(value: Any) -> Any:
    return cute.arch.warp_reduction_sum(value)


def _warp_max(value: Any) -> Any:
    return cute.arch.warp_reduction_max(value)


def _round_bf16(value: Any) -> Any:
    return ptx.asm(
        "{ .reg .b16 h, z; mov.b16 z, 0; cvt.rn.bf16.f32 h, $1; mov.b32 $0, {z, h}; }", [Float32], [value]
    )


@cute.kernel
def _mix_kernel(
    streams: Int64,
    result: Int64,
    output: Int64,
    gates: Int64,
    fn: Int64,
    shares: Int64,
    n: Int32,
    d: Int32,
    mixes: Int32,
):
    tid, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    lane = tid & 31
    warp = cute.arch.make_warp_uniform(tid // 32)
    column = block * COLUMNS + lane
    cute.arch.griddepcontrol_launch_dependents()
    weights = cute.make_rmem_tensor((ROWS_A_WARP * STREAMS,), Float32)
    for k in cutlass.range_constexpr(ROWS_A_WARP):
        row = warp * ROWS_A_WARP + k
        for i in cutlass.range_constexpr(STREAMS):
            at = (row * STREAMS + i).to(Int64) * d.to(Int64) + column.to(Int64)
            weights[k * STREAMS + i] = ptx.stream_f32(fn + at * 4, (row < mixes).to(Int32))
    cute.arch.griddepcontrol_wait()
    values = mixes + EXTRA
    for token in cutlass.range(n, unroll=1):
        x = cute.make_rmem_tensor((STREAMS,), Float32)
        for i in cutlass.range_constexpr(STREAMS):
            at = (token * STREAMS + i).to(Int64) * d.to(Int64) + column.to(Int64)
            x[i] = ptx.load_bf16(streams + at * 2)
        if output != 0:
            f = ptx.load_f32(output + (token.to(Int64) * d.to(Int64) + column.to(Int64)) * 4)
            g = [ptx.load_f32(gates + (token * 20 + i).to(Int64) * 4) for i in range(STREAMS * (STREAMS + 1))]
            mixed = [
                _round_bf16(
                    g[j] * f + g[4 + j] * x[0] + g[8 + j] * x[1] + g[12 + j] * x[2] + g[16 + j] * x[3]
                )
                for j in range(STREAMS)
            ]
            for i in cutlass.range_constexpr(STREAMS):
                x[i] = mixed[i]
        for i in cutlass.range_constexpr(STREAMS):
            if warp == i:
                at = (token * STREAMS + i).to(Int64) * d.to(Int64) + column.to(Int64)
                ptx.store_bf16(result + at * 2, x[i])
        place = shares + (token * values * blocks + block).to(Int64) * 4
        stride = blocks.to(Int64) * 4
        sums = []
        for k in cutlass.range_constexpr(ROWS_A_WARP):
            w = [weights[k * STREAMS + i] for i in range(STREAMS)]
            sums.append((w[0] * x[0] + w[1] * x[1]) + (w[2] * x[2] + w[3] * x[3]))
        # The ten products go to the warps: 0..7, then 8 and 9 to warps 0 and 1.
        pairs = [x[i] * x[j] for i, j in PAIRS]
        first, second = pairs[0], pairs[WARPS]
        for k in cutlass.range_constexpr(1, WARPS):
            first = ptx.pick(warp == k, pairs[k], first)
        for k in cutlass.range_constexpr(WARPS + 1, len(PAIRS)):
            second = ptx.pick(warp == k - WARPS, pairs[k], second)
        sums = [_warp_sum(value) for value in [*sums, first, second]]
        largest = _warp_max(
            cute.arch.fmax(
                cute.arch.fmax(ptx.magnitude(x[0]), ptx.magnitude(x[1])),
                cute.arch.fmax(ptx.magnitude(x[2]), ptx.magnitude(x[3])),
            )
        )
        if lane == 0:
            for k in cutlass.range_constexpr(ROWS_A_WARP):
                row = warp * ROWS_A_WARP + k
                if row < mixes:
                    ptx.store_f32(place + row.to(Int64) * stride, sums[k])
            ptx.store_f32(place + (mixes + warp).to(Int64) * stride, sums[ROWS_A_WARP])
            if warp < len(PAIRS) - WARPS:
                ptx.store_f32(place + (mixes + WARPS + warp).to(Int64) * stride, sums[ROWS_A_WARP + 1])
            if warp == WARPS - 1:
                ptx.store_f32(place + (values - 1).to(Int64) * stride, largest)


@cute.jit
def mix(
    streams: Int64,
    result: Int64,
    output: Int64,
    gates: Int64,
    fn: Int64,
    shares: Int64,
    n: Int32,
    d: Int32,
    mixes: Int32,
):
    _mix_kernel(streams, result, output, gates, fn, shares, n, d, mixes).launch(
        grid=(1, 1, 1), block=(THREADS, 1, 1)
    )


@cute.kernel
def _enter_kernel(
    streams: Int64,
    shares: Int64,
    scale: Int64,
    base: Int64,
    weight: Int64,
    x: Int64,
    gates: Int64,
    peak: Int64,
    d: Int32,
    mixes: Int32,
    blocks: Int32,
    rounds: Int32,
    norm_eps: Float32,
    eps: Float32,
):
    tid, _, _ = cute.arch.thread_idx()
    block, token, _ = cute.arch.block_idx()
    parts, _, _ = cute.arch.grid_dim()
    lane = tid & 31
    warp = cute.arch.make_warp_uniform(tid // 32)
    shared = cute.arch.get_dyn_smem(Int32, alignment=128).toint()
    column = block * THREADS + tid
    inside = (column < d).to(Int32)
    cute.arch.griddepcontrol_launch_dependents()
    w = ptx.stream_f32(weight + column.to(Int64) * 4, inside)
    first_scale = ptx.load_f32(scale)
    bases = [ptx.load_f32(base + i * 4) for i in range(STREAMS)]
    cute.arch.griddepcontrol_wait()
    x_old = []
    for i in cutlass.range_constexpr(STREAMS):
        at = (token * STREAMS + i).to(Int64) * d.to(Int64) + cutlass.min(column, d - 1).to(Int64)
        x_old.append(ptx.load_bf16(streams + at * 2))
    values = mixes + EXTRA
    source = shares + (token * values).to(Int64) * blocks.to(Int64) * 4
    # A warp adds up every eighth value, all of them at once, so that their loads overlap.
    totals = cute.make_rmem_tensor((VALUES_A_WARP,), Float32)
    totals.fill(0.0)
    largest = Float32(0.0)
    for part in cutlass.range(lane, blocks, 32, unroll=4):
        for k in cutlass.range_constexpr(VALUES_A_WARP):
            value = cutlass.min(warp + k * WARPS, values - 1)
            share = ptx.load_f32(source + (value * blocks + part).to(Int64) * 4)
            totals[k] = totals[k] + share
            if cutlass.const_expr(k == VALUES_A_WARP - 1):
                largest = cute.arch.fmax(largest, share)
    summed = [_warp_sum(totals[k]) for k in range(VALUES_A_WARP)]
    largest = _warp_max(largest)
    if lane == 0:
        for k in cutlass.range_constexpr(VALUES_A_WARP):
            value = warp + k * WARPS
            if value < values - 1:
                ptx.shared_store_f32(shared + value * 4, summed[k])
        if warp == WARPS - 1:
            # The last value is the maximum; every warp's last turn was at it or beyond, that is at it again.
            ptx.shared_store_f32(shared + (values - 1) * 4, largest)
    cute.arch.sync_threads()

    products = [ptx.shared_load_f32(shared + (mixes + k) * 4) for k in range(len(PAIRS))]
    square = Float32(0.0)
    for k in cutlass.range_constexpr(len(PAIRS)):
        if cutlass.const_expr(PAIRS[k][0] == PAIRS[k][1]):
            square = square + products[k]
    size = d.to(Float32)
    normed = ptx.inverse_root(square / (size * STREAMS) + norm_eps)
    pre = []
    for i in cutlass.range_constexpr(STREAMS):
        mixed = ptx.shared_load_f32(shared + i * 4) * normed
        pre.append(ptx.sigmoid(mixed * first_scale + bases[i]) + eps)
    if block < parts - 1:
        mean = Float32(0.0)
        for k in cutlass.range_constexpr(len(PAIRS)):
            i, j = PAIRS[k]
            mean = mean + pre[i] * pre[j] * products[k] * (1.0 if i == j else 2.0)
        root = ptx.inverse_root(mean / size + norm_eps)
        if column < d:
            total = (pre[0] * x_old[0] + pre[1] * x_old[1]) + (pre[2] * x_old[2] + pre[3] * x_old[3])
            here = x + (token.to(Int64) * d.to(Int64) + column.to(Int64)) * 2
            ptx.store_bf16(here, _round_bf16(total) * root * w)
    elif warp == 0:
        if (peak != 0) & (lane == 0):
            ptx.store_f32(peak + token.to(Int64) * 4, ptx.shared_load_f32(shared + (values - 1) * 4))
        if gates != 0:
            _gates(shared, scale, base, gates + (token * 20).to(Int64) * 4, normed, eps, rounds, lane)


@cute.jit
def _gates(
    shared: Int32,
    scale: Int64,
    base: Int64,
    gates: Int64,
    normed: Float32,
    eps: Float32,
    rounds: Int32,
    lane: Int32,
):
    """post (4) and comb (16) of one token; every lane works it all out, the first one stores it."""
    post_scale = ptx.load_f32(scale + 4)
    comb_scale = ptx.load_f32(scale + 8)
    post = cute.make_rmem_tensor((STREAMS,), Float32)
    comb = cute.make_rmem_tensor((STREAMS * STREAMS,), Float32)
    for i in cutlass.range_constexpr(STREAMS):
        mixed = ptx.shared_load_f32(shared + (STREAMS + i) * 4) * normed
        post[i] = ptx.sigmoid(mixed * post_scale + ptx.load_f32(base + (STREAMS + i) * 4)) * 2.0
    for i in cutlass.range_constexpr(STREAMS * STREAMS):
        mixed = ptx.shared_load_f32(shared + (2 * STREAMS + i) * 4) * normed
        comb[i] = mixed * comb_scale + ptx.load_f32(base + (2 * STREAMS + i) * 4)
    for i in cutlass.range_constexpr(STREAMS):
        row = [comb[i * STREAMS + j] for j in range(STREAMS)]
        top = cute.arch.fmax(cute.arch.fmax(row[0], row[1]), cute.arch.fmax(row[2], row[3]))
        row = [ptx.exponential(value - top) for value in row]
        total = (row[0] + row[1]) + (row[2] + row[3])
        for j in cutlass.range_constexpr(STREAMS):
            comb[i * STREAMS + j] = row[j] / total + eps
    _divide(comb, STREAMS, 1, eps)
    for _ in cutlass.range(rounds - 1, unroll=1):
        _divide(comb, 1, STREAMS, eps)
        _divide(comb, STREAMS, 1, eps)
    if lane == 0:
        for i in cutlass.range_constexpr(STREAMS):
            ptx.store_f32(gates + i * 4, post[i])
        for i in cutlass.range_constexpr(STREAMS * STREAMS):
            ptx.store_f32(gates + (STREAMS + i) * 4, comb[i])


def _divide(comb: Any, along: int, across: int, eps: Any) -> None:
    """Divide each line of the 4 x 4 matrix, whose entries lie `along` apart, by its sum + eps."""
    for line in range(STREAMS):
        places = [line * across + k * along for k in range(STREAMS)]
        entries = [comb[place] for place in places]
        inverse = ptx.reciprocal((entries[0] + entries[1]) + (entries[2] + entries[3]) + eps)
        for place, entry in zip(places, entries, strict=True):
            comb[place] = entry * inverse


@cute.jit
def enter(
    streams: Int64,
    shares: Int64,
    scale: Int64,
    base: Int64,
    weight: Int64,
    x: Int64,
    gates: Int64,
    peak: Int64,
    d: Int32,
    mixes: Int32,
    blocks: Int32,
    rounds: Int32,
    norm_eps: Float32,
    eps: Float32,
):
    _enter_kernel(
        streams,
        shares,
        scale,
        base,
        weight,
        x,
        gates,
        peak,
        d,
        mixes,
        blocks,
        rounds,
        norm_eps,
        eps,
    ).launch(grid=(1, 1, 1), block=(THREADS, 1, 1))
