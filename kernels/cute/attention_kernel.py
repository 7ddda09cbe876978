"""Attention of one token over the window's ring and chosen compressed rows, the first of two launches.

    partial   each block takes 16 heads and a share of the rows, 64 at a time: scores on the tensor cores,
              a running softmax, the weighted rows; out go sums, maxima and denominators
    merge     the shares of a head put together with its sink, turned back (inverse RoPE)

Query and rows are halves (`attention_staging`). Scores and sums are float32, probabilities halves relative to
the running maximum. Values of base 2: the query carries log2 e.

settled: all but the query and `chosen` was there before the kernel before this one, which made them, began
its work: the first rows are read while that goes on.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, ptx
from dsv4chat.kernels.cute.attention_staging import (
    A_WARP,
    NOTHING,
    PITCH,
    ROWS,
    WARPS,
    D,
    Rows,
    ask_heads,
    ask_rows,
    piece_at,
    prefetch_rows,
    stage_heads,
    stage_rows,
)
from dsv4chat.kernels.cute.hosting import host

HEADS = 16  # of a block: the rows of an MMA
THREADS = 32 * WARPS
SCORE_PITCH = ROWS * 4 + 16
WEIGHT_PITCH = ROWS * 2 + 16
# Shared memory: the query, as it is stored and later its halves, scores and weights; rows; the rest.
Q_BYTES = HEADS * PITCH
SCORES_BYTES = HEADS * SCORE_PITCH  # of half the channels
WEIGHTS_AT = Q_BYTES + 2 * SCORES_BYTES
ROWS_AT = HEADS * D * 4
TOPS_AT = ROWS_AT + ROWS * PITCH
MASKS_AT = TOPS_AT + 3 * HEADS * 4
SHARED_BYTES = MASKS_AT + ROWS * 4
LOG2_E = 1.4426950408889634


@cute.kernel
def _partial_kernel(
    query: Int64,
    rotation: Int64,
    ring: Int64,
    blocks: Int64,
    chosen: Int64,
    position: Int64,
    sums: Int64,
    tops: Int64,
    window: Int32,
    count: Int32,
    ratio: Int32,
    heads: Int32,
    share: Int32,
    settled: Int32,
    scale: Float32,
    eps: Float32,
):
    tid, _, _ = cute.arch.thread_idx()
    part, group, _ = cute.arch.block_idx()
    lane = tid & 31
    g = lane >> 2
    t = lane & 3
    warp = cute.arch.make_warp_uniform(tid // 32)
    shared = cute.arch.get_dyn_smem(Int32, alignment=128).toint()
    scores_at = shared + Q_BYTES
    weights_at = shared + WEIGHTS_AT
    rows_at = shared + ROWS_AT
    tops_at = shared + TOPS_AT  # running maxima, denominators, factors: 16 of each
    masks_at = shared + MASKS_AT
    first = part * share
    last = cutlass.min(first + share, window + count)
    places = cute.make_rmem_tensor((1,), Int32)
    plain = cute.make_rmem_tensor((4 * A_WARP,), Int32)
    powers = cute.make_rmem_tensor((2,), Int32)
    turned = cute.make_rmem_tensor((8,), Int32)
    heads_at = (query + (group * HEADS).to(Int64) * (D * 4), shared, warp, lane)
    early = (settled != 0) & ((chosen == 0) | (first + ROWS <= window))
    if settled == 0:
        cute.arch.griddepcontrol_wait()
    place = ptx.load_shared_by_all(position)
    if early == 0:
        cute.arch.griddepcontrol_wait()
        ask_heads(*heads_at)
    shown = cutlass.min(place + 1, window)
    visible = Int32(0)
    if ratio != 0:
        visible = (place + 1) // cutlass.max(ratio, 1)
    rows = Rows(ring, blocks, chosen, last, window, shown, visible, warp, lane)
    pair = (cutlass.max(lane - 16, 0) * 2).to(Int64)
    turns = [arithmetic.bits_to_f32(word) for word in ptx.load_128_past_l1(rotation + pair * 8)]
    if tid < HEADS:
        ptx.shared_store_f32(tops_at + tid * 4, Float32(NOTHING))
        ptx.shared_store_f32(tops_at + (HEADS + tid) * 4, Float32(0.0))
    result = cute.make_rmem_tensor((32,), Float32)
    result.fill(0.0)
    for start in cutlass.range(first, last, ROWS, unroll=1):
        ask_rows(places, plain, powers, turned, rows, start)
        # Only now may the next kernels ask for their weights: these few loads would queue behind them.
        if (start == first) & (early == 0):
            cute.arch.griddepcontrol_launch_dependents()
        stage_rows(places, plain, powers, turned, masks_at, rows_at, warp, lane)
        if start == first:
            if early != 0:
                cute.arch.griddepcontrol_wait()
                ask_heads(*heads_at)
                cute.arch.griddepcontrol_launch_dependents()
            stage_heads(shared, turns, warp, lane, scale * LOG2_E, eps)
        cute.arch.sync_threads()
        if start + ROWS < last:
            prefetch_rows(rows, start + ROWS)
        _scores(shared, rows_at, scores_at, warp, g, t)
        cute.arch.sync_threads()
        _softmax(scores_at, weights_at, tops_at, masks_at, warp, lane)
        cute.arch.sync_threads()
        low = ptx.shared_load_f32(tops_at + (2 * HEADS + g) * 4)
        high = ptx.shared_load_f32(tops_at + (2 * HEADS + g + 8) * 4)
        _rescale(result, [low, low, high, high])
        _weighted(result, rows_at, weights_at, warp, lane, g, t)
        cute.arch.sync_threads()
    head = group * HEADS
    if tid < HEADS:
        at = tops + ((part * heads + head + tid) * 2).to(Int64) * 4
        ptx.store_f32(at, ptx.shared_load_f32(tops_at + tid * 4))
        ptx.store_f32(at + 4, ptx.shared_load_f32(tops_at + (HEADS + tid) * 4))
    for tile in cutlass.range_constexpr(8):
        channel = warp * 64 + tile * 8 + t * 2
        for half in cutlass.range_constexpr(2):
            here = (part * heads + head + g + 8 * half).to(Int64) * D + channel.to(Int64)
            pair = [arithmetic.f32_to_bits(result[4 * tile + 2 * half + i]) for i in range(2)]
            ptx.store_64(sums + here * 4, pair)


def _rescale(result: Any, factors: Any) -> None:
    for i in range(32):
        result[i] = result[i] * factors[i % 4]


@cute.jit
def _scores(query: Int32, rows_at: Int32, scores_at: Int32, warp: Int32, g: Int32, t: Int32):
    """16 of the rows against the 16 heads, in half of the channels. A loop, as `_weighted` is: what runs once
    costs more to fetch than to carry out.
    """
    first = (warp & 3) * 16
    part = warp >> 2
    total = cute.make_rmem_tensor((16,), Float32)
    total.fill(0.0)
    for chunk in cutlass.range(D // 64, unroll=2):
        piece = part * (D // 16) + chunk * 4 + t
        here = piece_at(g, piece)  # of any row with this g
        low = ptx.shared_load_128(query + g * PITCH + here)
        high = ptx.shared_load_128(query + (g + 8) * PITCH + here)
        for tile in cutlass.range_constexpr(2):
            b = ptx.shared_load_128(rows_at + (first + tile * 8 + g) * PITCH + here)
            for half in cutlass.range_constexpr(2):
                a = [low[2 * half], high[2 * half], low[2 * half + 1], high[2 * half + 1]]
                own = 8 * tile + 4 * half
                c = [total[own + i] for i in range(4)]
                for i, value in enumerate(arithmetic.mma_f16(c, a, b[2 * half : 2 * half + 2])):
                    total[own + i] = value
    for tile in cutlass.range_constexpr(2):
        sums = [total[8 * tile + i] + total[8 * tile + 4 + i] for i in range(4)]
        for high in cutlass.range_constexpr(2):
            words = [arithmetic.f32_to_bits(sums[2 * high + i]) for i in range(2)]
            at = scores_at + part * SCORES_BYTES + (g + 8 * high) * SCORE_PITCH
            ptx.shared_store_64(at + (first + tile * 8 + t * 2) * 4, words)


def _softmax(scores_at: Any, weights_at: Any, tops_at: Any, masks_at: Any, warp: Any, lane: Any) -> None:
    """Two heads a warp: the new maximum, what the sums so far are multiplied by, the weights as halves."""
    masks = [ptx.shared_load_f32(masks_at + lane * 8 + 4 * i) for i in range(2)]
    for number in range(HEADS // WARPS):
        head = warp * (HEADS // WARPS) + number
        at = scores_at + head * SCORE_PITCH + lane * 8
        parts = [ptx.shared_load_64(at + part * SCORES_BYTES) for part in range(2)]
        both = [[arithmetic.bits_to_f32(word) for word in part] for part in parts]
        pair = [both[0][i] + both[1][i] + masks[i] for i in range(2)]
        before = ptx.shared_load_f32(tops_at + head * 4)
        denominator = ptx.shared_load_f32(tops_at + (HEADS + head) * 4)
        top = cute.arch.fmax(before, cute.arch.warp_reduction_max(cute.arch.fmax(*pair)))
        weights = [arithmetic.exp2(value - top) for value in pair]
        factor = arithmetic.exp2(before - top)
        total = cute.arch.warp_reduction_sum(weights[0] + weights[1])
        ptx.shared_store_32(weights_at + head * WEIGHT_PITCH + lane * 4, arithmetic.pack_f16(*weights))
        # Every lane writes the same.
        cute.arch.sync_warp()
        ptx.shared_store_f32(tops_at + head * 4, top)
        ptx.shared_store_f32(tops_at + (HEADS + head) * 4, denominator * factor + total)
        ptx.shared_store_f32(tops_at + (2 * HEADS + head) * 4, factor)


@cute.jit
def _weighted(
    result: cute.Tensor, rows_at: Int32, weights_at: Int32, warp: Int32, lane: Int32, g: Int32, t: Int32
):
    """This warp's 64 channels of the weighted rows, added to `result`."""
    for step in cutlass.range(ROWS // 16, unroll=1):
        at = weights_at + g * WEIGHT_PITCH + (step * 16 + t * 2) * 2
        a = [
            ptx.shared_load_32(at),
            ptx.shared_load_32(at + 8 * WEIGHT_PITCH),
            ptx.shared_load_32(at + 16),
            ptx.shared_load_32(at + 8 * WEIGHT_PITCH + 16),
        ]
        for two in cutlass.range_constexpr(4):
            # Lanes 0-7 and 8-15 point at rows 0-7 and 8-15 of eight channels, 16-31 at the next eight.
            row = step * 16 + (lane & 15)
            piece = warp * 8 + two * 2 + (lane >> 4)
            b = ptx.load_matrix_transposed(rows_at + row * PITCH + piece_at(row, piece))
            for tile in cutlass.range_constexpr(2):
                place = 4 * (2 * two + tile)
                c = arithmetic.mma_f16([result[place + i] for i in range(4)], a, b[2 * tile : 2 * tile + 2])
                for i, value in enumerate(c):
                    result[place + i] = value


def partial() -> Any:
    """The kernel's host side."""
    return host(_partial_kernel, THREADS, blocks=2)
