"""How attention's query and rows come into shared memory: asked for first, then left there as halves.

Rows are `kv_rows.Fp8Rows` of 448 + 64 channels, 584 bytes: 64 bfloat16 (RoPE), 448 E4M3, 7 powers of two.
They become halves, which hold E4M3 times a power of two exactly down to 2^-24. The query is normalised per
head and turned here. In shared memory a row's 16-byte pieces lie in an order (`piece_at`) in which both ways
to read them, a piece of two rows by eight lanes and one piece of eight rows, meet all banks.
"""

from dataclasses import dataclass
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, ptx
from dsv4chat.kernels.cute.prefetching import LINE_BYTES

D = 512
ROPE = 64
PLAIN = D - ROPE
ROW_BYTES = 584
ROWS = 64  # of a block at a time
WARPS = 8
A_WARP = ROWS // WARPS
HALF = PLAIN // 16  # lanes that take 8 channels of the first half of the plain ones, and 8 of the second
PITCH = 2 * D  # bytes from a row to the next in shared memory
NOWHERE = 1 << 30
NOTHING = -1.0e30  # a maximum before there is any row: finite, so that differences stay numbers


def piece_at(row: Any, piece: Any) -> Any:
    """Where a 16-byte piece of a row lies, from the row's beginning."""
    return (piece ^ (((row & 1) << 2) | ((row >> 1) & 3))) * 16


def ask_heads(query: Any, to: Any, warp: Any, lane: Any) -> None:
    """A warp's two heads of the query on their way into shared memory as they are."""
    for piece in range(2 * D * 4 // 512):
        at = warp * (2 * D * 4) + piece * 512 + lane * 16
        ptx.copy_async_16(to + at, query + at.to(Int64))
    cute.arch.cp_async_commit_group()


def stage_heads(at: Any, turns: Any, warp: Any, lane: Any, scale: Any, eps: Any) -> None:
    """What `ask_heads` asked for, of all warps, as halves in its place."""
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_warp()
    words = []
    for piece in range(2 * D * 4 // 512):
        words.append(ptx.shared_load_128(at + warp * (2 * D * 4) + piece * 512 + lane * 16))
    cute.arch.sync_threads()
    for i in range(2):
        own = [word for piece in words[4 * i : 4 * i + 4] for word in piece]
        _stage_head(own, turns, at, warp * 2 + i, lane, scale, eps)


def _stage_head(words: Any, turns: Any, to: Any, row: Any, lane: Any, scale: Any, eps: Any) -> None:
    """A head of the query, to be row `row`: divided by its own RMS, turned, scaled, as halves.

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
        at = to + row * PITCH + piece_at(row, part * 16 + (lane >> 1)) + (lane & 1) * 8
        ptx.shared_store_64(at, pairs)


@dataclass(frozen=True)
class Rows:
    """The rows of a block of threads, and where a warp and a lane stand; all of the kernel's types.

    ring, blocks, chosen: addresses, the last 0 where blocks go by number; last: behind the block's last row;
    window: slots of the ring, of which `shown` hold something; visible: blocks that do.
    """

    ring: Any
    blocks: Any
    chosen: Any
    last: Any
    window: Any
    shown: Any
    visible: Any
    warp: Any
    lane: Any


@cute.jit
def _place(rows: cutlass.Constexpr, start: Int32):
    """Of the warp's row lane % 8: slots of the ring, then blocks as -1 - number, by number or by choice, or
    NOWHERE for a row that is not there, for which one that is gets read.
    """
    row = start + rows.warp * A_WARP + (rows.lane & (A_WARP - 1))
    place = Int32(NOWHERE)
    if row < rows.window:
        place = arithmetic.pick(row < rows.shown, row, place)
    elif row < rows.last:
        block = row - rows.window
        if rows.chosen != 0:
            block = ptx.load_64(rows.chosen + block.to(Int64) * 8)[0]
        place = arithmetic.pick(block < rows.visible, -1 - block, place)
    return place


@cute.jit
def prefetch_rows(rows: cutlass.Constexpr, start: Int32):
    """What `ask_rows` will ask for, on its way into L2."""
    row_at = _row_at(rows, _place(rows, start))
    for at in cutlass.range_constexpr(0, ROW_BYTES, 4 * LINE_BYTES):
        line = cutlass.min(at + (rows.lane >> 3) * LINE_BYTES, ROW_BYTES - 1)
        ptx.prefetch(row_at + line.to(Int64))


@cute.jit
def ask_rows(
    places: cute.Tensor,
    plain: cute.Tensor,
    powers: cute.Tensor,
    turned: cute.Tensor,
    rows: cutlass.Constexpr,
    start: Int32,
):
    """Ask for the warp's eight of the next ROWS rows. A lane has the place of row lane % 8."""
    lane = rows.lane
    place = _place(rows, start)
    places[0] = place
    own = ptx.load_64_past_l1(_row_at(rows, place) + (2 * ROPE + PLAIN))
    powers[0] = own[0]
    powers[1] = own[1]
    piece = cutlass.min(lane, HALF - 1)
    for i in cutlass.range_constexpr(A_WARP):
        source = _row_at(rows, cute.arch.shuffle_sync(place, i)) + 2 * ROPE
        at = source + (piece * 8).to(Int64)
        for half in cutlass.range_constexpr(2):
            two = ptx.load_64_past_l1(at + half * (HALF * 8))
            plain[4 * i + 2 * half] = two[0]
            plain[4 * i + 2 * half + 1] = two[1]
    for i in cutlass.range_constexpr(2):
        from_ = cute.arch.shuffle_sync(place, (lane >> 3) + 4 * i)
        source = _row_at(rows, from_) + ((lane & 7) * 16).to(Int64)
        for half in cutlass.range_constexpr(2):
            two = ptx.load_64_past_l1(source + half * 8)
            turned[4 * i + 2 * half] = two[0]
            turned[4 * i + 2 * half + 1] = two[1]


def _row_at(rows: Rows, place: Any) -> Any:
    slot = arithmetic.pick(place == NOWHERE, Int32(0), place)
    block = slot < 0
    number = arithmetic.pick(block, -1 - slot, slot)
    return arithmetic.pick(block, rows.blocks, rows.ring) + number.to(Int64) * ROW_BYTES


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
        for half in cutlass.range_constexpr(2):
            piece = lane + HALF * half
            group = piece >> 3  # of 64 channels, which have a power in common
            byte = (arithmetic.pick(group < 4, low, high) >> (group & 3) * 8) & 255
            factor = arithmetic.power_of_two_f16(byte)
            pairs = []
            for word in cutlass.range_constexpr(2):
                pairs += arithmetic.e4m3_pairs(plain[4 * i + 2 * half + word])
            pairs = [arithmetic.pick(there, arithmetic.multiply_f16(pair, factor), zero) for pair in pairs]
            if lane < HALF:
                ptx.shared_store_128(to + (first + i) * PITCH + piece_at(i, piece), pairs)
    for i in cutlass.range_constexpr(2):
        row = (lane >> 3) + 4 * i
        there = cute.arch.shuffle_sync(place, row) != NOWHERE
        pairs = [arithmetic.pack_f16(*arithmetic.unpack_bf16(turned[4 * i + word])) for word in range(4)]
        pairs = [arithmetic.pick(there, pair, zero) for pair in pairs]
        at = to + (first + row) * PITCH + piece_at(row, PLAIN // 8 + (lane & 7))
        ptx.shared_store_128(at, pairs)
