"""Attention of one token over the window's ring and chosen compressed rows, the first of two launches.

    partial   each block takes 16 heads and a share of the rows, 64 at a time: scores on the tensor cores,
              a running softmax, the weighted rows; out go sums, maxima and denominators
    merge     the shares of a head put together with its sink, turned back (inverse RoPE)

Query and rows are halves (`attention_staging`). Scores and sums are float32, probabilities halves relative to
the running maximum. Values of base 2: the query carries log2 e.
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
    ask_head,
    ask_rows,
    stage_head,
    stage_rows,
)
from dsv4chat.kernels.cute.hosting import host

HEADS = 16  # of a block: the rows of an MMA
THREADS = 32 * WARPS
SCORE_PITCH = ROWS * 4 + 16
WEIGHT_PITCH = ROWS * 2 + 16
Q_BYTES = HEADS * PITCH
ROWS_BYTES = ROWS * PITCH
SCORES_BYTES = HEADS * SCORE_PITCH
WEIGHTS_BYTES = HEADS * WEIGHT_PITCH
SHARED_BYTES = Q_BYTES + ROWS_BYTES + SCORES_BYTES + WEIGHTS_BYTES + 3 * HEADS * 4 + ROWS * 4
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
    rows_at = shared + Q_BYTES
    scores_at = rows_at + ROWS_BYTES
    weights_at = scores_at + SCORES_BYTES
    tops_at = weights_at + WEIGHTS_BYTES  # running maxima, denominators, factors: 16 of each
    masks_at = tops_at + 3 * HEADS * 4
    first = part * share
    last = cutlass.min(first + share, window + count)
    places = cute.make_rmem_tensor((1,), Int32)
    plain = cute.make_rmem_tensor((4 * A_WARP,), Int32)
    powers = cute.make_rmem_tensor((2,), Int32)
    turned = cute.make_rmem_tensor((8,), Int32)
    cute.arch.griddepcontrol_wait()
    # Everything is asked for before the first of it is used: two heads a warp, and eight rows.
    place = ptx.load_64(position)[0]
    one = warp * 2
    words = ask_head(query, group * HEADS + one, lane)
    shown = cutlass.min(place + 1, window)
    visible = Int32(0)
    if ratio != 0:
        visible = (place + 1) // cutlass.max(ratio, 1)
    where = (ring, blocks, chosen)
    seen = (last, window, shown, visible, warp, lane)
    ask_rows(places, plain, powers, turned, *where, first, *seen)
    more = ask_head(query, group * HEADS + one + 1, lane)
    pair = (cutlass.max(lane - 16, 0) * 2).to(Int64)
    turns = [arithmetic.bits_to_f32(word) for word in ptx.load_128(rotation + pair * 8)]
    # Only now may the next kernels ask for their weights: these few loads would queue behind them.
    cute.arch.griddepcontrol_launch_dependents()
    stage_head(words, turns, shared + one * PITCH, lane, scale * LOG2_E, eps)
    stage_head(more, turns, shared + (one + 1) * PITCH, lane, scale * LOG2_E, eps)
    if tid < HEADS:
        ptx.shared_store_f32(tops_at + tid * 4, Float32(NOTHING))
        ptx.shared_store_f32(tops_at + (HEADS + tid) * 4, Float32(0.0))
    result = cute.make_rmem_tensor((32,), Float32)
    result.fill(0.0)
    for start in cutlass.range(first, last, ROWS, unroll=1):
        stage_rows(places, plain, powers, turned, masks_at, rows_at, warp, lane)
        cute.arch.sync_threads()
        if start + ROWS < last:
            ask_rows(places, plain, powers, turned, *where, start + ROWS, *seen)
        _scores(shared, rows_at, scores_at, masks_at + warp * 32, warp, g, t)
        cute.arch.sync_threads()
        _softmax(scores_at, weights_at, tops_at, warp, lane)
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


def _scores(query: Any, rows_at: Any, scores_at: Any, mask: Any, warp: Any, g: Any, t: Any) -> None:
    """This warp's 8 rows against the 16 heads."""
    total = [[Float32(0.0)] * 4, [Float32(0.0)] * 4]
    for chunk in range(D // 32):
        piece = (chunk * 4 + t) * 16
        low = ptx.shared_load_128(query + g * PITCH + piece)
        high = ptx.shared_load_128(query + (g + 8) * PITCH + piece)
        b = ptx.shared_load_128(rows_at + (warp * 8 + g) * PITCH + piece)
        for half in range(2):
            a = [low[2 * half], high[2 * half], low[2 * half + 1], high[2 * half + 1]]
            total[half] = arithmetic.mma_f16(total[half], a, b[2 * half : 2 * half + 2])
    for i in range(4):
        column = t * 2 + i % 2
        value = total[0][i] + total[1][i] + ptx.shared_load_f32(mask + column * 4)
        ptx.shared_store_f32(scores_at + (g + 8 * (i // 2)) * SCORE_PITCH + (warp * 8 + column) * 4, value)


def _softmax(scores_at: Any, weights_at: Any, tops_at: Any, warp: Any, lane: Any) -> None:
    """Two heads a warp: the new maximum, what the sums so far are multiplied by, the weights as halves."""
    for number in range(HEADS // WARPS):
        head = warp * (HEADS // WARPS) + number
        at = scores_at + head * SCORE_PITCH + lane * 8
        pair = [ptx.shared_load_f32(at), ptx.shared_load_f32(at + 4)]
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


def _weighted(result: Any, rows_at: Any, weights_at: Any, warp: Any, lane: Any, g: Any, t: Any) -> None:
    """This warp's 64 channels of the weighted rows, added to `result`."""
    for step in range(ROWS // 16):
        at = weights_at + g * WEIGHT_PITCH + (step * 16 + t * 2) * 2
        a = [
            ptx.shared_load_32(at),
            ptx.shared_load_32(at + 8 * WEIGHT_PITCH),
            ptx.shared_load_32(at + 16),
            ptx.shared_load_32(at + 8 * WEIGHT_PITCH + 16),
        ]
        for two in range(4):
            # Lanes 0-7 and 8-15 point at rows 0-7 and 8-15 of eight channels, 16-31 at the next eight.
            row = step * 16 + (lane & 15)
            channel = warp * 64 + two * 16 + (lane >> 4) * 8
            b = ptx.load_matrix_transposed(rows_at + row * PITCH + channel * 2)
            for tile in range(2):
                place = 4 * (2 * two + tile)
                c = arithmetic.mma_f16([result[place + i] for i in range(4)], a, b[2 * tile : 2 * tile + 2])
                for i in range(4):
                    result[place + i] = c[i]


def partial() -> Any:
    """The kernel's host side."""
    return host(_partial_kernel, THREADS, blocks=2)
