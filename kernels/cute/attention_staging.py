"""How attention's query and rows come into shared memory: asked for first, then left there as halves.

Rows are `kv_rows.Fp8Rows` of 448 + 64 channels, 584 bytes: 64 bfloat16 (RoPE), 448 E4M3, 7 powers of two.
They become halves, which hold E4M3 times a power of two exactly down to 2^-24. The query is normalised per
head and turned here.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, ptx

D = 512
ROPE = 64
PLAIN = D - ROPE
ROW_BYTES = 584
ROWS = 64  # of a block at a time
WARPS = 8
A_WARP = ROWS // WARPS
PITCH = 2 * D + 16  # bytes from a row to the next in shared memory: all banks for ldmatrix
NOWHERE = 1 << 30
NOTHING = -1.0e30  # a maximum before there is any row: finite, so that differences stay numbers


def ask_head(query: Any, head: Any, lane: Any) -> list[Any]:
    """The words of a head of the query."""
    source = query + (head * D + lane * 4).to(Int64) * 4
    words = []
    for part in range(D // 128):
        words += ptx.load_128(source + part * 512)
    return words


def stage_head(words: Any, turns: Any, to: Any, lane: Any, scale: Any, eps: Any) -> None:
    """A head of the query: divided by its own RMS, turned, scaled, as halves.

    The last 64 channels, which turn, are the last part's of lanes 16 to 31.
    """
    values = [arithmetic.bits_to_f32(word) for word in words]
    square = Float32(0.0)
    for value in values:
        square = square + value * value
    square = cute.arch.warp_reduction_sum(square)
    factor = arithmetic.inverse_root(square / D + eps) * scale
    values = [value * factor for value in values]
    tail = values[12:]
    low = arithmetic.rotated(tail[0:2], turns[0], turns[1])
    high = arithmetic.rotated(tail[2:4], turns[2], turns[3])
    inside = lane >= 16
    tail = [arithmetic.pick(inside, new, old) for new, old in zip([*low, *high], tail, strict=True)]
    values = values[:12] + tail
    for part in range(D // 128):
        four = values[4 * part : 4 * part + 4]
        pairs = [arithmetic.pack_f16(four[0], four[1]), arithmetic.pack_f16(four[2], four[3])]
        ptx.shared_store_64(to + part * 256 + lane * 8, pairs)


@cute.jit
def ask_rows(
    places: cute.Tensor,
    plain: cute.Tensor,
    powers: cute.Tensor,
    turned: cute.Tensor,
    ring: Int64,
    blocks: Int64,
    chosen: Int64,
    start: Int32,
    last: Int32,
    window: Int32,
    shown: Int32,
    visible: Int32,
    warp: Int32,
    lane: Int32,
):
    """Ask for the warp's eight of the next ROWS rows: slots of the ring, then blocks, by number or by choice.

    A lane finds the place of row lane % 8: a slot, a block as -1 - its number, or NOWHERE for a row that is
    not there, for which one that is gets read.
    """
    row = start + warp * A_WARP + (lane & (A_WARP - 1))
    place = Int32(NOWHERE)
    if row < window:
        place = arithmetic.pick(row < shown, row, place)
    elif row < last:
        block = row - window
        if chosen != 0:
            block = ptx.load_64(chosen + block.to(Int64) * 8)[0]
        place = arithmetic.pick(block < visible, -1 - block, place)
    places[0] = place
    own = ptx.load_64(_row_at(ring, blocks, place) + (2 * ROPE + PLAIN))
    powers[0] = own[0]
    powers[1] = own[1]
    piece = cutlass.min(lane, PLAIN // 16 - 1)
    for i in cutlass.range_constexpr(A_WARP):
        source = _row_at(ring, blocks, cute.arch.shuffle_sync(place, i)) + 2 * ROPE
        at = source + (piece * 16).to(Int64)
        for half in cutlass.range_constexpr(2):
            two = ptx.load_64(at + half * 8)
            plain[4 * i + 2 * half] = two[0]
            plain[4 * i + 2 * half + 1] = two[1]
    for i in cutlass.range_constexpr(2):
        from_ = cute.arch.shuffle_sync(place, (lane >> 3) + 4 * i)
        source = _row_at(ring, blocks, from_) + ((lane & 7) * 16).to(Int64)
        for half in cutlass.range_constexpr(2):
            two = ptx.load_64(source + half * 8)
            turned[4 * i + 2 * half] = two[0]
            turned[4 * i + 2 * half + 1] = two[1]


def _row_at(ring: Any, blocks: Any, place: Any) -> Any:
    slot = arithmetic.pick(place == NOWHERE, Int32(0), place)
    block = slot < 0
    number = arithmetic.pick(block, -1 - slot, slot)
    return arithmetic.pick(block, blocks, ring) + number.to(Int64) * ROW_BYTES


@cute.jit
def stage_rows(
    places: cute.Tensor,
    plain: cute.Tensor,
    powers: cute.Tensor,
    turned: cute.Tensor,
    masks: Int32,
    to: Int32,
    warp: Int32,
    lane: Int32,
):
    """The warp's rows as halves, zeros for those not there, which also get a mask that no maximum lets in."""
    place = places[0]
    first = warp * A_WARP
    if lane < A_WARP:
        mask = arithmetic.pick(place == NOWHERE, Float32(2 * NOTHING), Float32(0.0))
        ptx.shared_store_f32(masks + (first + lane) * 4, mask)
    zero = Int32(0)
    for i in cutlass.range_constexpr(A_WARP):
        there = cute.arch.shuffle_sync(place, i) != NOWHERE
        low, high = (cute.arch.shuffle_sync(powers[half], i) for half in range(2))
        factor = arithmetic.power_of_two_f16(
            (arithmetic.pick(lane < 16, low, high) >> ((lane >> 2) & 3) * 8) & 255
        )
        pairs = []
        for word in cutlass.range_constexpr(4):
            pairs += arithmetic.e4m3_pairs(plain[4 * i + word])
        pairs = [arithmetic.pick(there, arithmetic.multiply_f16(pair, factor), zero) for pair in pairs]
        if lane < PLAIN // 16:
            for half in cutlass.range_constexpr(2):
                ptx.shared_store_128(
                    to + (first + i) * PITCH + lane * 32 + half * 16, pairs[4 * half : 4 * half + 4]
                )
    for i in cutlass.range_constexpr(2):
        row = (lane >> 3) + 4 * i
        there = cute.arch.shuffle_sync(place, row) != NOWHERE
        pairs = [arithmetic.pack_f16(*arithmetic.unpack_bf16(turned[4 * i + word])) for word in range(4)]
        pairs = [arithmetic.pick(there, pair, zero) for pair in pairs]
        ptx.shared_store_128(to + (first + row) * PITCH + PLAIN * 2 + (lane & 7) * 16, pairs)
