"""What follows a layer's input projections, one launch of up to four blocks: `step_rows`.

    block 0   the token's own row: RMSNorm, RoPE, rounding to FP8, into the ring
    block 1   the norm of the low-rank query
    block 2   the compressor: the token's kv and gate into the open block; when that closes, its row
    block 3   the same for the index keys, rotated by the Hadamard matrix and rounded to 4 bits

A thread has one channel (of the compressors with overlap two, d apart), which nobody else reads or writes but
for the sums of a norm, the maximum of a group and the pairs of RoPE. Rows and keys are stored by
`stored_rows`.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, ptx, reductions
from dsv4chat.kernels.cute.hosting import host
from dsv4chat.kernels.cute.prefetching import LINE_BYTES, prefetch
from dsv4chat.kernels.cute.stored_rows import KEY, KEY_BYTES, ROPE, ROW_BYTES, D, store_key, store_row

THREADS = 512
WARPS = THREADS // 32
SHARED_BYTES = 4 * (2 * WARPS + KEY)


def _turned(value: Any, channel: Any, first: int, last: int, rotation: Any) -> Any:
    """RoPE of channels first..last, pairs of neighbouring lanes."""
    other = cute.arch.shuffle_sync_bfly(value, 1)
    pair = cutlass.min(cutlass.max(channel - first, 0), last - first - 1) // 2
    at = rotation + pair.to(Int64) * 8
    cosine, sine = ptx.load_f32(at), ptx.load_f32(at + 4)
    sign = arithmetic.pick((channel & 1) == 0, Float32(-1.0), Float32(1.0))
    turned = value * cosine + sign * other * sine
    return arithmetic.pick((channel >= first) & (channel < last), turned, value)


@cute.jit
def _own_row(
    kv: Int64,
    norm: Int64,
    rotation: Int64,
    ring: Int64,
    values: Int64,
    place: Int32,
    window: Int32,
    eps: Float32,
    shared: Int32,
    tid: Int32,
):
    x = ptx.load_f32(kv + tid.to(Int64) * 4)
    square = reductions.block_sum(x * x, shared, tid, WARPS)
    x = x * arithmetic.inverse_root(square / D + eps) * ptx.load_f32(norm + tid.to(Int64) * 4)
    x = _turned(x, tid, D - ROPE, D, rotation)
    slot = place % window
    rounded = store_row(x, tid, ring + slot.to(Int64) * ROW_BYTES, shared + 4 * WARPS, tid)
    ptx.store_f32(values + (slot * D + tid).to(Int64) * 4, rounded)


@cute.jit
def _low_rank(low: Int64, norm: Int64, out: Int64, count: Int32, eps: Float32, shared: Int32, tid: Int32):
    square = Float32(0.0)
    for at in cutlass.range(tid, count, THREADS, unroll=1):
        value = ptx.load_f32(low + at.to(Int64) * 4)
        square = square + value * value
    square = reductions.block_sum(square, shared, tid, WARPS)
    factor = arithmetic.inverse_root(square / count.to(Float32) + eps)
    for at in cutlass.range(tid, count, THREADS, unroll=1):
        value = ptx.load_f32(low + at.to(Int64) * 4) * factor * ptx.load_f32(norm + at.to(Int64) * 4)
        ptx.store_bf16(out + at.to(Int64) * 2, value)


@cute.jit
def _pooled(
    first_kv: Int64,
    first_gate: Int64,
    kv: Int64,
    gate: Int64,
    stride: Int64,
    first_stride: Int64,
    rows: Int32,
    overlap: Int32,
):
    """One channel: sum of softmax(gate) kv over the rows, and over as many before them with overlap."""
    top = Float32(-3.0e38)
    for r in cutlass.range(rows, unroll=4):
        top = cute.arch.fmax(top, ptx.load_f32(gate + r.to(Int64) * stride))
    if overlap != 0:
        for r in cutlass.range(rows, unroll=4):
            top = cute.arch.fmax(top, ptx.load_f32(first_gate + r.to(Int64) * first_stride))
    total = Float32(0.0)
    result = Float32(0.0)
    for r in cutlass.range(rows, unroll=4):
        weight = arithmetic.exponential(ptx.load_f32(gate + r.to(Int64) * stride) - top)
        total = total + weight
        result = result + weight * ptx.load_f32(kv + r.to(Int64) * stride)
    if overlap != 0:
        for r in cutlass.range(rows, unroll=4):
            weight = arithmetic.exponential(ptx.load_f32(first_gate + r.to(Int64) * first_stride) - top)
            total = total + weight
            result = result + weight * ptx.load_f32(first_kv + r.to(Int64) * first_stride)
    return result / total


@cute.jit
def _compress(
    kv: Int64,
    gate: Int64,
    ape: Int64,
    norm: Int64,
    rotation: Int64,
    open_rows: Int64,
    previous: Int64,
    stored: Int64,
    place: Int32,
    ratio: Int32,
    alive: Int32,
    d: cutlass.Constexpr,
    eps: Float32,
    shared: Int32,
    tid: Int32,
):
    """A compressor of d channels; previous: 0 without overlap."""
    overlap = (previous != 0).to(Int32)
    width = d * (1 + overlap)
    slot = place % ratio
    channel = cutlass.min(tid, d - 1)
    stride = width.to(Int64) * 4
    gates = open_rows + ratio.to(Int64) * stride
    own = channel.to(Int64) * 4
    row_at = slot.to(Int64) * stride
    if tid < d:
        for group in cutlass.range(1 + overlap, unroll=1):
            at = own + (group * d).to(Int64) * 4
            ptx.store_f32(open_rows + row_at + at, ptx.load_f32(kv + at))
            added = ptx.load_f32(gate + at) + ptx.load_f32(ape + row_at + at)
            ptx.store_f32(gates + row_at + at, added)
    if slot == ratio - 1:
        shift = own + (overlap * d).to(Int64) * 4
        half = Int64(d * 4)
        before_gates = previous + ratio.to(Int64) * half
        x = _pooled(
            previous + own, before_gates + own, open_rows + shift, gates + shift, stride, half, ratio, overlap
        )
        if (overlap != 0) & (alive != 0) & (tid < d):
            for r in cutlass.range(ratio, unroll=1):
                from_, to = r.to(Int64) * stride + own, r.to(Int64) * half + own
                ptx.store_f32(previous + to, ptx.load_f32(open_rows + from_))
                ptx.store_f32(before_gates + to, ptx.load_f32(gates + from_))
        square = reductions.block_sum(arithmetic.pick(tid < d, x * x, Float32(0.0)), shared, tid, d // 32)
        x = x * arithmetic.inverse_root(square / d + eps) * ptx.load_f32(norm + own)
        x = _turned(x, channel, d - ROPE, d, rotation)
        block = (place // ratio).to(Int64)
        if cutlass.const_expr(d == D):
            store_row(x, tid, stored + block * ROW_BYTES, shared + 4 * WARPS, tid)
        else:
            store_key(x, tid, stored + block * KEY_BYTES, shared + 8 * WARPS)


@cute.jit
def _prefetch(start: Int64, size: Int32):
    """By one block: `size` bytes."""
    prefetch(start, (size + (LINE_BYTES - 1)) // LINE_BYTES, Int32(0), Int32(1), THREADS)


@cute.jit
def _prefetch_compressor(
    ape: Int64,
    norm: Int64,
    open_rows: Int64,
    previous: Int64,
    position: Int64,
    ratio: Int32,
    d: cutlass.Constexpr,
):
    """What `_compress` reads with every token, and the norm; of short blocks, which have overlap, all."""
    _prefetch(norm, Int32(d * 4))
    if previous != 0:
        size = ratio * (2 * d * 4)
        _prefetch(ape, size)
        _prefetch(open_rows, 2 * size)
        _prefetch(previous, size)
    else:
        # A position that is about to change costs no more than the wrong row.
        slot = ptx.load_shared_by_all(position) % ratio
        _prefetch(ape + (slot * d).to(Int64) * 4, Int32(d * 4))


@cute.kernel
def _kernel(
    kv: Int64,
    norm: Int64,
    rotation: Int64,
    block_rotation: Int64,
    position: Int64,
    alive: Int64,
    ring: Int64,
    values: Int64,
    block_kv: Int64,
    block_gate: Int64,
    block_ape: Int64,
    block_norm: Int64,
    block_open: Int64,
    block_previous: Int64,
    block_stored: Int64,
    key_kv: Int64,
    key_gate: Int64,
    key_ape: Int64,
    key_norm: Int64,
    key_open: Int64,
    key_previous: Int64,
    key_stored: Int64,
    low: Int64,
    low_norm: Int64,
    low_out: Int64,
    window: Int32,
    ratio: Int32,
    low_count: Int32,
    eps: Float32,
):
    tid, _, _ = cute.arch.thread_idx()
    role, _, _ = cute.arch.block_idx()
    shared = cute.arch.get_dyn_smem(Int32, alignment=128).toint()
    cute.arch.griddepcontrol_launch_dependents()
    # What lies in memory since the last token is on its way into L2 meanwhile.
    if role == 0:
        _prefetch(norm, Int32(D * 4))
    elif role == 1:
        _prefetch(low_norm, low_count * 4)
    elif role == 2:
        _prefetch_compressor(block_ape, block_norm, block_open, block_previous, position, ratio, D)
    else:
        _prefetch_compressor(key_ape, key_norm, key_open, key_previous, position, ratio, KEY)
    cute.arch.griddepcontrol_wait()
    place = ptx.load_64(position)[0]
    going = ptx.load_u8(alive)
    if role == 0:
        _own_row(kv, norm, rotation, ring, values, place, window, eps, shared, tid)
    elif role == 1:
        _low_rank(low, low_norm, low_out, low_count, eps, shared, tid)
    elif role == 2:
        _compress(
            block_kv, block_gate, block_ape, block_norm, block_rotation, block_open, block_previous,
            block_stored, place, ratio, going, D, eps, shared, tid,
        )  # fmt: skip
    else:
        _compress(
            key_kv, key_gate, key_ape, key_norm, block_rotation, key_open, key_previous,
            key_stored, place, ratio, going, KEY, eps, shared, tid,
        )  # fmt: skip


def rows() -> Any:
    """The kernel's host side."""
    return host(_kernel, THREADS)
