"""Hyper-connections around a sublayer: everything between two of them in one launch of a cluster a token.

    X'_j = post_j F + sum_i comb[i, j] X_i, stored;  mixes = X' fn^T;  pre, post, comb (Sinkhorn) from them
    x = RMSNorm(sum_i pre_i X'_i) * weight, with max |X'|

A thread has one column: four streams, and its part of fn, asked for before the kernel waits; so are streams
and gates if they are settled, that is if only F comes from the kernel before. Gates are handed on as post and
the logits of comb: Sinkhorn's rounds are done here, while the weights are on their way. What has to be
known of all columns (the mixes, the products <X'_i, X'_j>, the maximum) is added up over a warp, over a
block, and over the cluster's 16 blocks through each other's shared memory. The mean square of x needs no pass
of its own: it is sum_ij pre_i pre_j <X'_i, X'_j> / d. Four streams.
"""

from collections.abc import Sequence
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, ptx, together
from dsv4chat.kernels.cute.hosting import host

STREAMS = 4
PAIRS = tuple((i, j) for i in range(STREAMS) for j in range(i, STREAMS))
MIXES = STREAMS * (STREAMS + 2)
PARTS = 16  # blocks of a cluster
COLUMNS = 448  # of a block, at most
THREADS = COLUMNS + 32  # the last warp has the gates
WARPS = THREADS // 32
EARLY = MIXES - 2  # rows of fn asked for early: there are registers for no more
VALUES = MIXES + len(PAIRS) + 1  # mixes, products, the maximum
PITCH = VALUES + 1
# Shared memory: a barrier; values of the block's warps, of the cluster's blocks, of the block, of the
# cluster; base and scale.
WARPS_AT = 16
BLOCKS_AT = WARPS_AT + WARPS * PITCH * 4
BLOCK_AT = BLOCKS_AT + PARTS * PITCH * 4
TOTALS_AT = BLOCK_AT + PITCH * 4
CONSTANTS_AT = TOTALS_AT + PITCH * 4
GATES_AT = CONSTANTS_AT + (MIXES + 4) * 4
SHARED_BYTES = GATES_AT + STREAMS * (STREAMS + 1) * 4


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
        kept = [arithmetic.pick(upper, held[i + bit], held[i]) for i in range(bit)]
        sent = [arithmetic.pick(upper, held[i], held[i + bit]) for i in range(bit)]
        held = [a + cute.arch.shuffle_sync_bfly(b, bit) for a, b in zip(kept, sent, strict=True)]
    return held[0]


@cute.jit
def _ask(
    weights: cute.Tensor, first: cutlass.Constexpr, last: cutlass.Constexpr, fn: Int64, mixes: Int32, d: Int32
):
    """Rows first..last of fn, if there are so many: this thread's column of every stream; `fn`: its first."""
    stride = d.to(Int64) * 4
    if mixes >= last:
        at = fn + stride * (first * STREAMS)
        for i in cutlass.range_constexpr(first * STREAMS, last * STREAMS):
            weights[i] = ptx.load_f32(at)
            at = at + stride


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
        together.expect_bytes(shared, PARTS * VALUES * 4)
    together.cluster_arrive()
    if tid < mixes:
        ptx.shared_store_f32(constants + tid * 4, ptx.load_f32(base + tid.to(Int64) * 4))
    if (tid < 3) & ((tid == 0) | (mixes == MIXES)):
        ptx.shared_store_f32(constants + (MIXES + tid) * 4, ptx.load_f32(scale + tid.to(Int64) * 4))
    if settled == 0:
        cute.arch.griddepcontrol_wait()
    first = token.to(Int64) * STREAMS * wide + column
    held = cute.make_rmem_tensor((STREAMS,), Float32)
    for i in cutlass.range_constexpr(STREAMS):
        held[i] = ptx.load_bf16_if(streams + (first + i * wide) * 2, wanted)
    weights = cute.make_rmem_tensor((MIXES * STREAMS,), Float32)
    own_fn = fn + column * 4
    gates_at = shared + GATES_AT
    if warp == WARPS - 1:
        if output != 0:
            _gates(gates + (token * 20).to(Int64) * 4, gates_at, eps, rounds, lane)
        weights.fill(0.0)
    else:
        weights.fill(0.0)
        if inside:
            _ask(weights, 0, STREAMS, own_fn, mixes, d)
            _ask(weights, STREAMS, EARLY, own_fn, mixes, d)
    cute.arch.griddepcontrol_wait()
    if inside:
        _ask(weights, EARLY, MIXES, own_fn, mixes, d)
    norm = ptx.load_f32_if(weight + column * 4, wanted)
    own_f = (token.to(Int64) * wide + column) * 4
    f = ptx.load_f32_if(output + own_f, (inside & (output != 0)).to(Int32))
    f = f + ptx.load_f32_if(second + own_f, (inside & (second != 0)).to(Int32))
    # Only now may the next kernels ask for their weights: these few loads would queue behind them.
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
    sums = cute.make_rmem_tensor((1 + VALUES - 32,), Float32)
    sums.fill(0.0)
    if warp * 32 < columns:
        for number, value in enumerate(_sums(own, [weights[i] for i in range(MIXES * STREAMS)], lane)):
            sums[number] = value
    _share(sums[0], [sums[1 + i] for i in range(VALUES - 32)], shared, part, tid, lane, warp)
    products = [ptx.shared_load_f32(totals + (MIXES + k) * 4) for k in range(len(PAIRS))]
    square = (products[0] + products[4]) + (products[7] + products[9])
    size = d.to(Float32)
    normed = arithmetic.inverse_root(square / (size * STREAMS) + norm_eps)
    if (part == 0) & (warp == WARPS - 1):
        if (peak != 0) & (lane == 0):
            ptx.store_f32(peak + token.to(Int64) * 4, ptx.shared_load_f32(totals + (VALUES - 1) * 4))
        if following != 0:
            _store_gates(totals, constants, following + (token * 20).to(Int64) * 4, normed, lane)
    pre = []
    for i in cutlass.range_constexpr(STREAMS):
        mixed = ptx.shared_load_f32(totals + i * 4) * normed * ptx.shared_load_f32(constants + MIXES * 4)
        pre.append(arithmetic.sigmoid(mixed + ptx.shared_load_f32(constants + i * 4)) + eps)
    mean = Float32(0.0)
    for k in cutlass.range_constexpr(len(PAIRS)):
        i, j = PAIRS[k]
        mean = mean + pre[i] * pre[j] * products[k] * (1.0 if i == j else 2.0)
    root = arithmetic.inverse_root(mean / size + norm_eps)
    if inside:
        total = (pre[0] * own[0] + pre[1] * own[1]) + (pre[2] * own[2] + pre[3] * own[3])
        ptx.store_bf16(x + (token.to(Int64) * wide + column) * 2, arithmetic.round_bf16(total) * root * norm)


def _sums(own: Sequence[Any], weights: Sequence[Any], lane: Any) -> list[Any]:
    """Over a warp's columns: lane l's value l, then those from 32 on, for all lanes."""
    values = []
    for row in range(MIXES):
        w = weights[row * STREAMS : (row + 1) * STREAMS]
        values.append((w[0] * own[0] + w[1] * own[1]) + (w[2] * own[2] + w[3] * own[3]))
    values += [own[i] * own[j] for i, j in PAIRS]
    largest = cute.arch.warp_reduction_max(_larger([arithmetic.magnitude(value) for value in own]))
    rest = [cute.arch.warp_reduction_sum(value) for value in values[32:]]
    return [_sum_to_lanes(values[:32], lane), *rest, largest]


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
    together.cluster_wait()
    for block in cutlass.range(warp, PARTS, WARPS, unroll=1):
        there = shared + (BLOCKS_AT + part * (PITCH * 4) + lane * 4)
        together.send_f32(there, block, ptx.shared_load_f32(shared + BLOCK_AT + lane * 4), shared)
        if lane < VALUES - 32:
            value = ptx.shared_load_f32(shared + BLOCK_AT + (32 + lane) * 4)
            together.send_f32(there + 128, block, value, shared)
    if tid < VALUES:
        together.await_bytes(shared)
        total = Float32(0.0)
        for other in cutlass.range_constexpr(PARTS):
            value = ptx.shared_load_f32(shared + BLOCKS_AT + (other * PITCH + tid) * 4)
            total = _joined(total, value, tid)
        ptx.shared_store_f32(shared + TOTALS_AT + tid * 4, total)
    cute.arch.sync_threads()


def _joined(total: Any, value: Any, number: Any) -> Any:
    """The last of the values is a maximum, the others are sums."""
    return arithmetic.pick(number == VALUES - 1, cute.arch.fmax(total, value), total + value)


@cute.jit
def _store_gates(totals: Int32, constants: Int32, gates: Int64, normed: Float32, lane: Int32):
    """For the next passage: post (4), a lane each, and the logits of comb (16)."""
    if lane < STREAMS * (STREAMS + 1):
        mixed = ptx.shared_load_f32(totals + (STREAMS + lane) * 4) * normed
        scale = arithmetic.pick(lane < STREAMS, Int32(MIXES + 1), Int32(MIXES + 2))
        value = mixed * ptx.shared_load_f32(constants + scale * 4)
        value = value + ptx.shared_load_f32(constants + (STREAMS + lane) * 4)
        ptx.store_f32(
            gates + lane.to(Int64) * 4,
            arithmetic.pick(lane < STREAMS, arithmetic.sigmoid(value) * 2.0, value),
        )


@cute.jit
def _gates(gates: Int64, to: Int32, eps: Float32, rounds: Int32, lane: Int32):
    """post and comb (Sinkhorn) from what the passage before left; lane 4 i + j has comb[i, j]."""
    post = ptx.load_f32_if(gates + lane.to(Int64) * 4, (lane < STREAMS).to(Int32))
    entry = ptx.load_f32(gates + (STREAMS + (lane & 15)).to(Int64) * 4)
    top = entry
    for step in cutlass.range_constexpr(2):
        top = cute.arch.fmax(top, cute.arch.shuffle_sync_bfly(top, 1 << step))
    entry = arithmetic.exponential(entry - top)
    entry = _divided(entry, 1, Float32(0.0)) + eps
    entry = _divided(entry, STREAMS, eps)
    for _ in cutlass.range(rounds - 1, unroll=1):
        entry = _divided(entry, 1, eps)
        entry = _divided(entry, STREAMS, eps)
    if lane < STREAMS:
        ptx.shared_store_f32(to + lane * 4, post)
    if lane < STREAMS * STREAMS:
        ptx.shared_store_f32(to + (STREAMS + lane) * 4, entry)


def _divided(entry: Any, along: int, eps: Any) -> Any:
    """Divided by the sum + eps of its line of four, which lie `along` lanes apart."""
    total = entry + cute.arch.shuffle_sync_bfly(entry, along)
    total = total + cute.arch.shuffle_sync_bfly(total, 2 * along)
    return entry * arithmetic.reciprocal(total + eps)


def connection() -> Any:
    """The kernel's host side."""
    return host(_kernel, THREADS)
