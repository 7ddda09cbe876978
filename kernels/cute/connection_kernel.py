"""Hyper-connections around a sublayer: everything between two of them in one launch of a cluster a token.

    X'_j = post_j F + sum_i comb[i, j] X_i, stored;  mixes = X' fn^T;  pre, post, comb (Sinkhorn) from them
    x = RMSNorm(sum_i pre_i X'_i) * weight, with max |X'|

A thread has one column: four streams, and its part of fn, asked for before the kernel waits. What has to be
known of all columns (the mixes, the products <X'_i, X'_j>, the maximum) is added up over a warp, over a
block, and over the cluster's 16 blocks through each other's shared memory. The mean square of x needs no pass
of its own: it is sum_ij pre_i pre_j <X'_i, X'_j> / d. Four streams.
"""

from collections.abc import Sequence
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import ptx

STREAMS = 4
PAIRS = tuple((i, j) for i in range(STREAMS) for j in range(i, STREAMS))
MIXES = STREAMS * (STREAMS + 2)
PARTS = 16  # blocks of a cluster
THREADS = 448  # and columns of a block, at most
WARPS = THREADS // 32
VALUES = MIXES + len(PAIRS) + 1  # mixes, products, the maximum
PITCH = VALUES + 1
# Shared memory: a barrier; values of the block's warps, of the cluster's blocks, of the block, of the
# cluster; base and scale.
WARPS_AT = 16
BLOCKS_AT = WARPS_AT + WARPS * PITCH * 4
BLOCK_AT = BLOCKS_AT + PARTS * PITCH * 4
TOTALS_AT = BLOCK_AT + PITCH * 4
CONSTANTS_AT = TOTALS_AT + PITCH * 4
SHARED_BYTES = CONSTANTS_AT + (MIXES + 3) * 4


def _round_bf16(value: Any) -> Any:
    return ptx.asm(
        "{ .reg .b16 h, z; mov.b16 z, 0; cvt.rn.bf16.f32 h, $1; mov.b32 $0, {z, h}; }", [Float32], [value]
    )


def _larger(values: Sequence[Any]) -> Any:
    largest = values[0]
    for value in values[1:]:
        largest = cute.arch.fmax(largest, value)
    return largest


def _sum_to_lanes(values: Sequence[Any], lane: Any) -> Any:
    """32 values of every lane -> lane l has the sum of value l over the warp, with one shuffle a sum."""
    held = list(values)
    for bit in (16, 8, 4, 2, 1):
        upper = (lane & bit) != 0
        kept = [ptx.pick(upper, held[i + bit], held[i]) for i in range(bit)]
        sent = [ptx.pick(upper, held[i], held[i + bit]) for i in range(bit)]
        held = [a + cute.arch.shuffle_sync_bfly(b, bit) for a, b in zip(kept, sent, strict=True)]
    return held[0]


@cute.kernel
def _kernel(
    streams: Int64,
    result: Int64,
    output: Int64,
    gates: Int64,
    fn: Int64,
    scale: Int64,
    base: Int64,
    weight: Int64,
    x: Int64,
    following: Int64,
    peak: Int64,
    d: Int32,
    mixes: Int32,
    rounds: Int32,
    norm_eps: Float32,
    eps: Float32,
):
    tid, _, _ = cute.arch.thread_idx()
    part, token, _ = cute.arch.block_idx()
    lane = tid & 31
    warp = cute.arch.make_warp_uniform(tid // 32)
    shared = cute.arch.get_dyn_smem(Int32, alignment=128).toint()
    totals = shared + TOTALS_AT
    constants = shared + CONSTANTS_AT
    columns = d // PARTS
    inside = tid < columns
    wanted = inside.to(Int32)
    column = (part * columns + tid).to(Int64)
    wide = d.to(Int64)
    # Nobody sends to a block before it runs and its barrier is there.
    if tid == 0:
        ptx.expect_bytes(shared, PARTS * VALUES * 4)
    ptx.cluster_arrive()
    weights = []
    for row in cutlass.range_constexpr(MIXES):
        there = (inside & (row < mixes)).to(Int32)
        for i in cutlass.range_constexpr(STREAMS):
            weights.append(ptx.load_f32_if(fn + ((row * STREAMS + i) * wide + column) * 4, there))
    norm = ptx.load_f32_if(weight + column * 4, wanted)
    if tid < mixes:
        ptx.shared_store_f32(constants + tid * 4, ptx.load_f32(base + tid.to(Int64) * 4))
    if (tid < 3) & ((tid == 0) | (mixes == MIXES)):
        ptx.shared_store_f32(constants + (MIXES + tid) * 4, ptx.load_f32(scale + tid.to(Int64) * 4))
    cute.arch.griddepcontrol_wait()
    first = token.to(Int64) * STREAMS * wide + column
    held = cute.make_rmem_tensor((STREAMS,), Float32)
    for i in cutlass.range_constexpr(STREAMS):
        held[i] = Float32(0.0)
    if inside:
        for i in cutlass.range_constexpr(STREAMS):
            held[i] = ptx.load_bf16(streams + (first + i * wide) * 2)
        if output != 0:
            f = ptx.load_f32(output + (token.to(Int64) * wide + column) * 4)
            g = []
            for i in cutlass.range_constexpr(STREAMS + 1):
                g += [
                    ptx.bits_to_f32(word) for word in ptx.load_128(gates + (token * 20 + i * 4).to(Int64) * 4)
                ]
            mixed = [
                _round_bf16(
                    g[j] * f
                    + (g[4 + j] * held[0] + g[8 + j] * held[1])
                    + (g[12 + j] * held[2] + g[16 + j] * held[3])
                )
                for j in range(STREAMS)
            ]
            for i in cutlass.range_constexpr(STREAMS):
                held[i] = mixed[i]
                ptx.store_bf16(result + (first + i * wide) * 2, mixed[i])
    # Only now may the next kernels ask for their weights: these few loads would queue behind them.
    cute.arch.griddepcontrol_launch_dependents()
    own = [held[i] for i in range(STREAMS)]
    _add_up(own, weights, shared, part, tid, lane, warp)
    products = [ptx.shared_load_f32(totals + (MIXES + k) * 4) for k in range(len(PAIRS))]
    square = (products[0] + products[4]) + (products[7] + products[9])
    size = d.to(Float32)
    normed = ptx.inverse_root(square / (size * STREAMS) + norm_eps)
    if (part == 0) & (warp == WARPS - 1):
        if (peak != 0) & (lane == 0):
            ptx.store_f32(peak + token.to(Int64) * 4, ptx.shared_load_f32(totals + (VALUES - 1) * 4))
        if following != 0:
            _gates(totals, constants, following + (token * 20).to(Int64) * 4, normed, eps, rounds, lane)
    pre = []
    for i in cutlass.range_constexpr(STREAMS):
        mixed = ptx.shared_load_f32(totals + i * 4) * normed * ptx.shared_load_f32(constants + MIXES * 4)
        pre.append(ptx.sigmoid(mixed + ptx.shared_load_f32(constants + i * 4)) + eps)
    mean = Float32(0.0)
    for k in cutlass.range_constexpr(len(PAIRS)):
        i, j = PAIRS[k]
        mean = mean + pre[i] * pre[j] * products[k] * (1.0 if i == j else 2.0)
    root = ptx.inverse_root(mean / size + norm_eps)
    if inside:
        total = (pre[0] * own[0] + pre[1] * own[1]) + (pre[2] * own[2] + pre[3] * own[3])
        ptx.store_bf16(x + (token.to(Int64) * wide + column) * 2, _round_bf16(total) * root * norm)


def _add_up(
    own: Sequence[Any], weights: Sequence[Any], shared: Any, part: Any, tid: Any, lane: Any, warp: Any
) -> None:
    """The VALUES of all the cluster's columns into `totals`."""
    values = []
    for row in range(MIXES):
        w = weights[row * STREAMS : (row + 1) * STREAMS]
        values.append((w[0] * own[0] + w[1] * own[1]) + (w[2] * own[2] + w[3] * own[3]))
    values += [own[i] * own[j] for i, j in PAIRS]
    largest = cute.arch.warp_reduction_max(_larger([ptx.magnitude(value) for value in own]))
    mine = _sum_to_lanes(values[:32], lane)
    rest = [cute.arch.warp_reduction_sum(value) for value in values[32:]]
    _share(mine, [*rest, largest], shared, part, tid, lane, warp)


@cute.jit
def _share(
    mine: Float32, rest: list[Float32], shared: Int32, part: Int32, tid: Int32, lane: Int32, warp: Int32
):
    """A warp's values (lane l has value l, all have the rest) to the block, the cluster, and their sums."""
    here = shared + WARPS_AT + warp * (PITCH * 4)
    ptx.shared_store_f32(here + lane * 4, mine)
    if lane == 0:
        for i in cutlass.range_constexpr(VALUES - 32):
            ptx.shared_store_f32(here + (32 + i) * 4, rest[i])
    cute.arch.sync_threads()
    if tid < VALUES:
        total = Float32(0.0)
        for other in cutlass.range_constexpr(WARPS):
            total = _joined(total, ptx.shared_load_f32(shared + WARPS_AT + (other * PITCH + tid) * 4), tid)
        ptx.shared_store_f32(shared + BLOCK_AT + tid * 4, total)
    cute.arch.sync_threads()
    ptx.cluster_wait()
    for block in cutlass.range(warp, PARTS, WARPS, unroll=1):
        there = shared + (BLOCKS_AT + part * (PITCH * 4) + lane * 4)
        ptx.send_f32(there, block, ptx.shared_load_f32(shared + BLOCK_AT + lane * 4), shared)
        if lane < VALUES - 32:
            value = ptx.shared_load_f32(shared + BLOCK_AT + (32 + lane) * 4)
            ptx.send_f32(there + 128, block, value, shared)
    if tid < VALUES:
        ptx.await_bytes(shared)
        total = Float32(0.0)
        for other in cutlass.range_constexpr(PARTS):
            value = ptx.shared_load_f32(shared + BLOCKS_AT + (other * PITCH + tid) * 4)
            total = _joined(total, value, tid)
        ptx.shared_store_f32(shared + TOTALS_AT + tid * 4, total)
    cute.arch.sync_threads()


def _joined(total: Any, value: Any, number: Any) -> Any:
    """The last of the values is a maximum, the others are sums."""
    return ptx.pick(number == VALUES - 1, cute.arch.fmax(total, value), total + value)


@cute.jit
def _gates(
    totals: Int32,
    constants: Int32,
    gates: Int64,
    normed: Float32,
    eps: Float32,
    rounds: Int32,
    lane: Int32,
):
    """post (4) and comb (16) of one token; every lane works it all out, the first one stores it."""
    post_scale = ptx.shared_load_f32(constants + (MIXES + 1) * 4)
    comb_scale = ptx.shared_load_f32(constants + (MIXES + 2) * 4)
    post = cute.make_rmem_tensor((STREAMS,), Float32)
    comb = cute.make_rmem_tensor((STREAMS * STREAMS,), Float32)
    for i in cutlass.range_constexpr(STREAMS):
        mixed = ptx.shared_load_f32(totals + (STREAMS + i) * 4) * normed
        post[i] = ptx.sigmoid(mixed * post_scale + ptx.shared_load_f32(constants + (STREAMS + i) * 4)) * 2.0
    for i in cutlass.range_constexpr(STREAMS * STREAMS):
        mixed = ptx.shared_load_f32(totals + (2 * STREAMS + i) * 4) * normed
        comb[i] = mixed * comb_scale + ptx.shared_load_f32(constants + (2 * STREAMS + i) * 4)
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
def connection(
    streams: Int64,
    result: Int64,
    output: Int64,
    gates: Int64,
    fn: Int64,
    scale: Int64,
    base: Int64,
    weight: Int64,
    x: Int64,
    following: Int64,
    peak: Int64,
    d: Int32,
    mixes: Int32,
    rounds: Int32,
    norm_eps: Float32,
    eps: Float32,
):
    _kernel(
        streams, result, output, gates, fn, scale, base, weight, x, following, peak, d, mixes, rounds,
        norm_eps, eps,
    ).launch(grid=(1, 1, 1), block=(THREADS, 1, 1))  # fmt: skip
