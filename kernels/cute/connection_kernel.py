"""Hyper-connections around a sublayer: everything between two of them in one launch of a cluster a token.

    X'_j = post_j F + sum_i comb[i, j] X_i, stored;  mixes = X' fn^T;  pre, post, comb (Sinkhorn) from them
    x = RMSNorm(sum_i pre_i X'_i) * weight, with max |X'|

A thread has one column: four streams, asked for before the kernel waits, as are the gates, if they are
settled, that is if only F comes from the kernel before. The block's part of fn, which lies in one piece, goes
into shared memory by bulk copies, also before: in registers it would keep the block out until a
multiprocessor is empty. Gates are handed on as post and the logits of comb: Sinkhorn's rounds are done here
(`sinkhorn`), meanwhile. What has to be known of all columns (the mixes, the products <X'_i, X'_j>, the
maximum) is added up over a warp, over a block, and over the cluster's 16 blocks through each other's shared
memory. The mean square of x needs no pass of its own: it is sum_ij pre_i pre_j <X'_i, X'_j> / d. Four
streams.
"""

from collections.abc import Sequence
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, barriers, ptx
from dsv4chat.kernels.cute.hosting import host
from dsv4chat.kernels.cute.sinkhorn import STREAMS, largest_of, sinkhorn

PAIRS = tuple((i, j) for i in range(STREAMS) for j in range(i, STREAMS))
MIXES = STREAMS * (STREAMS + 2)
PARTS = 16  # blocks of a cluster
COLUMNS = 448  # of a block, at most
THREADS = COLUMNS + 32  # at most; the last warp has the gates
WARPS = COLUMNS // 32  # with columns, at most
COPIES = 8
VALUES = MIXES + len(PAIRS) + 1  # mixes, products, the maximum
PITCH = VALUES + 1
# Shared memory: a barrier for the cluster's values and one for fn; values of the block's warps, of the
# cluster's blocks, of the block, of the cluster; base and scale; gates; pre and the inverse root; the block's
# part of fn.
FN_BARRIER = 8
WARPS_AT = 16
BLOCKS_AT = WARPS_AT + WARPS * PITCH * 4
BLOCK_AT = BLOCKS_AT + PARTS * PITCH * 4
TOTALS_AT = BLOCK_AT + PITCH * 4
CONSTANTS_AT = TOTALS_AT + PITCH * 4
GATES_AT = CONSTANTS_AT + (MIXES + 4) * 4
RESULT_AT = (GATES_AT + STREAMS * (STREAMS + 1) * 4 + 15) // 16 * 16
FN_AT = RESULT_AT + 32
SHARED_BYTES = FN_AT  # and fn


@cute.jit
def _fetch(fn: Int64, shared: Int32, size: Int32):
    """By one thread: the block's part of fn on its way into shared memory, in COPIES pieces."""
    barriers.expect_bytes(shared, PARTS * VALUES * 4)
    barriers.expect_bytes(shared + FN_BARRIER, size)
    piece = size // COPIES
    for i in cutlass.range_constexpr(COPIES):
        at = piece * i
        barriers.copy_bulk(shared + FN_AT + at, fn + at.to(Int64), piece, shared + FN_BARRIER)


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
    second: Int64,
    d: Int32,
    mixes: Int32,
    rounds: Int32,
    settled: Int32,
    norm_eps: Float32,
    eps: Float32,
):
    tid, _, _ = cute.arch.thread_idx()
    part, token, _ = cute.arch.block_idx()
    threads, _, _ = cute.arch.block_dim()
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
    if tid == 0:
        size = mixes * STREAMS * columns * 4
        _fetch(fn + (part * size).to(Int64), shared, size)
    # Nobody sends to a block before it runs and its barrier is there.
    barriers.cluster_arrive()
    own_base = ptx.load_f32_if(base + tid.to(Int64) * 4, (tid < mixes).to(Int32))
    scaled = (tid < 3) & ((tid == 0) | (mixes == MIXES))
    own_scale = ptx.load_f32_if(scale + tid.to(Int64) * 4, scaled.to(Int32))
    if settled == 0:
        cute.arch.griddepcontrol_wait()
    first = token.to(Int64) * STREAMS * wide + column
    held = cute.make_rmem_tensor((STREAMS,), Float32)
    for i in cutlass.range_constexpr(STREAMS):
        held[i] = ptx.load_bf16_if(streams + (first + i * wide) * 2, wanted)
    norm = ptx.load_f32_if(weight + column * 4, wanted)
    gates_at = shared + GATES_AT
    if (tid >= threads - 32) & (output != 0):
        sinkhorn(gates + (token * 20).to(Int64) * 4, gates_at, eps, rounds, lane)
    cute.arch.griddepcontrol_wait()
    own_f = (token.to(Int64) * wide + column) * 4
    f = ptx.load_f32_if(output + own_f, (inside & (output != 0)).to(Int32))
    f = f + ptx.load_f32_if(second + own_f, (inside & (second != 0)).to(Int32))
    if warp == 0:
        # The warp that began the barrier waits for all. Only now may the next kernels ask for their weights:
        # all of this would queue behind them.
        barriers.await_bytes(shared + FN_BARRIER)
        cute.arch.griddepcontrol_launch_dependents()
    cute.arch.sync_threads()
    if inside & (output != 0):
        g = []
        for i in cutlass.range_constexpr(STREAMS + 1):
            g += ptx.shared_load_f32x4(gates_at + i * 16)
        mixed = [
            arithmetic.round_bf16(
                g[j] * f
                + (g[4 + j] * held[0] + g[8 + j] * held[1])
                + (g[12 + j] * held[2] + g[16 + j] * held[3])
            )
            for j in range(STREAMS)
        ]
        for i in cutlass.range_constexpr(STREAMS):
            held[i] = mixed[i]
            ptx.store_bf16(result + (first + i * wide) * 2, mixed[i])
    own = [held[i] for i in range(STREAMS)]
    if tid < mixes:
        ptx.shared_store_f32(constants + tid * 4, own_base)
    if scaled:
        ptx.shared_store_f32(constants + (MIXES + tid) * 4, own_scale)
    workers = (columns + 31) // 32
    if warp < workers:
        at = shared + FN_AT + cutlass.min(tid, columns - 1) * 4
        _sums(own, at, columns * 4, mixes, shared + WARPS_AT + warp * (PITCH * 4), lane)
    _share(shared, part, tid, lane, warp, workers, threads // 32)
    if warp == 0:
        _conclude(shared, d, norm_eps, eps, lane)
    cute.arch.sync_threads()
    if (part == 0) & (tid >= threads - 32):
        if (peak != 0) & (lane == 0):
            ptx.store_f32(peak + token.to(Int64) * 4, ptx.shared_load_f32(totals + (VALUES - 1) * 4))
        if following != 0:
            _store_gates(totals, constants, following + (token * 20).to(Int64) * 4, norm_eps, d, lane)
    pre = ptx.shared_load_f32x4(shared + RESULT_AT)
    root = ptx.shared_load_f32(shared + RESULT_AT + STREAMS * 4)
    if inside:
        total = (pre[0] * own[0] + pre[1] * own[1]) + (pre[2] * own[2] + pre[3] * own[3])
        ptx.store_bf16(x + (token.to(Int64) * wide + column) * 2, arithmetic.round_bf16(total) * root * norm)


@cute.jit
def _sums(own: list[Float32], fn: Int32, pitch: Int32, mixes: Int32, to: Int32, lane: Int32):
    """A warp's values, over its columns. fn: where this thread's begins, `pitch` bytes from row to row.

    A loop, because instructions come in from far: what runs once costs more to fetch than to carry out.
    """
    at = fn
    place = to + ((lane >> 3) & 3) * 4
    for _ in cutlass.range(mixes // STREAMS, unroll=1):
        four = []
        for row in cutlass.range_constexpr(STREAMS):
            w = [ptx.shared_load_f32(at + (row * STREAMS + i) * pitch) for i in range(STREAMS)]
            four.append((w[0] * own[0] + w[1] * own[1]) + (w[2] * own[2] + w[3] * own[3]))
        _store_sums(four, place, lane)
        at = at + STREAMS * STREAMS * pitch
        place = place + STREAMS * 4
    products = [own[i] * own[j] for i, j in PAIRS]
    for first in cutlass.range_constexpr(0, 8, STREAMS):
        _store_sums(products[first : first + STREAMS], to + (MIXES + first + ((lane >> 3) & 3)) * 4, lane)
    # The last place is the maximum's.
    _store_sums(
        [products[8], products[9], products[9], products[9]], to + (MIXES + 8 + ((lane >> 3) & 3)) * 4, lane
    )
    largest = cute.arch.warp_reduction_max(largest_of([arithmetic.magnitude(value) for value in own]))
    cute.arch.sync_warp()
    if lane == 0:
        ptx.shared_store_f32(to + (VALUES - 1) * 4, largest)


@cute.jit
def _store_sums(four: list[Float32], to: Int32, lane: Int32):
    """The warp's sums of four values of each lane; lanes 8 i and on have that of value i, and its place."""
    held = four
    for bit in cutlass.range_constexpr(2):
        half = 2 >> bit
        upper = (lane & (8 * half)) != 0
        kept = [arithmetic.pick(upper, held[half + i], held[i]) for i in range(half)]
        sent = [arithmetic.pick(upper, held[i], held[half + i]) for i in range(half)]
        held = [a + cute.arch.shuffle_sync_bfly(b, 8 * half) for a, b in zip(kept, sent, strict=True)]
    total = held[0]
    for step in cutlass.range_constexpr(3):
        total = total + cute.arch.shuffle_sync_bfly(total, 4 >> step)
    if (lane & 7) == 0:
        ptx.shared_store_f32(to, total)


@cute.jit
def _share(shared: Int32, part: Int32, tid: Int32, lane: Int32, warp: Int32, workers: Int32, warps: Int32):
    """The warps' values to the block, the cluster, and their sums."""
    cute.arch.sync_threads()
    if tid < VALUES:
        total = Float32(0.0)
        for other in cutlass.range(workers, unroll=4):
            total = _joined(total, ptx.shared_load_f32(shared + WARPS_AT + (other * PITCH + tid) * 4), tid)
        ptx.shared_store_f32(shared + BLOCK_AT + tid * 4, total)
    cute.arch.sync_threads()
    barriers.cluster_wait()
    for block in cutlass.range(warp, PARTS, warps, unroll=1):
        there = shared + (BLOCKS_AT + part * (PITCH * 4) + lane * 4)
        barriers.send_f32(there, block, ptx.shared_load_f32(shared + BLOCK_AT + lane * 4), shared)
        if lane < VALUES - 32:
            value = ptx.shared_load_f32(shared + BLOCK_AT + (32 + lane) * 4)
            barriers.send_f32(there + 128, block, value, shared)


@cute.jit
def _conclude(shared: Int32, d: Int32, norm_eps: Float32, eps: Float32, lane: Int32):
    """By one warp: the values over the cluster, pre, and what x is normalised by."""
    barriers.await_bytes(shared)
    totals = shared + TOTALS_AT
    for first in cutlass.range_constexpr(0, VALUES, 32):
        number = cutlass.min(first + lane, VALUES - 1)
        total = Float32(0.0)
        for other in cutlass.range(PARTS, unroll=4):
            value = ptx.shared_load_f32(shared + BLOCKS_AT + (other * PITCH + number) * 4)
            total = _joined(total, value, number)
        ptx.shared_store_f32(totals + number * 4, total)
    cute.arch.sync_warp()
    constants = shared + CONSTANTS_AT
    products = [ptx.shared_load_f32(totals + (MIXES + k) * 4) for k in range(len(PAIRS))]
    normed = _normed(products, d, norm_eps)
    pre = []
    for i in cutlass.range_constexpr(STREAMS):
        mixed = ptx.shared_load_f32(totals + i * 4) * normed * ptx.shared_load_f32(constants + MIXES * 4)
        pre.append(arithmetic.sigmoid(mixed + ptx.shared_load_f32(constants + i * 4)) + eps)
    mean = Float32(0.0)
    for k in cutlass.range_constexpr(len(PAIRS)):
        i, j = PAIRS[k]
        mean = mean + pre[i] * pre[j] * products[k] * (1.0 if i == j else 2.0)
    if lane == 0:
        ptx.shared_store_f32x4(shared + RESULT_AT, pre)
        root = arithmetic.inverse_root(mean * arithmetic.reciprocal(d.to(Float32)) + norm_eps)
        ptx.shared_store_f32(shared + RESULT_AT + STREAMS * 4, root)


def _normed(products: Sequence[Any], d: Any, eps: Any) -> Any:
    """What the mixes are multiplied by: the inverse RMS of all streams."""
    square = (products[0] + products[4]) + (products[7] + products[9])
    return arithmetic.inverse_root(square * arithmetic.reciprocal(d.to(Float32) * STREAMS) + eps)


def _joined(total: Any, value: Any, number: Any) -> Any:
    """The last of the values is a maximum, the others are sums."""
    return arithmetic.pick(number == VALUES - 1, cute.arch.fmax(total, value), total + value)


@cute.jit
def _store_gates(totals: Int32, constants: Int32, gates: Int64, eps: Float32, d: Int32, lane: Int32):
    """For the next passage: post (4), a lane each, and the logits of comb (16)."""
    products = [ptx.shared_load_f32(totals + (MIXES + k) * 4) for k in range(len(PAIRS))]
    normed = _normed(products, d, eps)
    if lane < STREAMS * (STREAMS + 1):
        mixed = ptx.shared_load_f32(totals + (STREAMS + lane) * 4) * normed
        scale = arithmetic.pick(lane < STREAMS, Int32(MIXES + 1), Int32(MIXES + 2))
        value = mixed * ptx.shared_load_f32(constants + scale * 4)
        value = value + ptx.shared_load_f32(constants + (STREAMS + lane) * 4)
        ptx.store_f32(
            gates + lane.to(Int64) * 4,
            arithmetic.pick(lane < STREAMS, arithmetic.sigmoid(value) * 2.0, value),
        )


def connection() -> Any:
    """The kernel's host side."""
    return host(_kernel, THREADS, fewer=True)
