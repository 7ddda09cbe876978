"""The walk of `gemv` for one row of activations, where every warp counts and nothing waits for a tile's end.

A block has a run of units, tile after tile, and its 8 warps take every eighth of them wherever a tile ends. A
warp leaves its 16 sums of a tile in shared memory; the block adds them up once for several tiles. A run may
begin and end within a tile (split): then the tile's result comes in two parts, that of the block which has
its beginning and that of the next.

NVFP4: what 8 columns of B are good for. Column n has x only where lane n % 4 holds its first (n < 4) or
second block of 16 codes, zeros elsewhere; so each column of the product belongs to one block scale, which is
applied to the sum instead of the codes: 8 multiplications a lane and unit instead of 64.
"""

from collections.abc import Callable
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, decode, ptx
from dsv4chat.kernels.cute.gemv import THREADS, WARPS, put, values_of
from dsv4chat.kernels.cute.units import (
    NVFP4,
    STAGE_BYTES,
    TIMES,
    Lane,
    chunks,
    copy_unit,
    pieces,
    steps,
    wide,
)

WARP_BYTES = 16 * 4  # a warp's sums of a tile
TILE_BYTES = WARPS * WARP_BYTES
ZEROS_BYTES = 512  # as much as a unit's x
MANY, FEW = 16, 8  # tiles added up at a time
MOST_UNITS = 32  # FP8's stages leave no room for many beside more activations


def tiles_at_once(fmt: Any, units: Any) -> Any:
    """How many tiles a block adds up at a time; units: of a row."""
    return Int32(MANY) if fmt is NVFP4 else arithmetic.pick(units <= MOST_UNITS, Int32(MANY), Int32(FEW))


def sums_bytes(fmt: Any, units: Any) -> Any:
    """Shared memory for the warps' sums."""
    return tiles_at_once(fmt, units) * TILE_BYTES


@cute.jit
def _ask(
    fmt: cutlass.Constexpr,
    exact: cutlass.Constexpr,
    locate: cutlass.Constexpr,
    lane: cutlass.Constexpr,
    at: cutlass.Constexpr,
    place: cutlass.Constexpr,
    run: cutlass.Constexpr,
    slot: Int32,
    hop: Int32,
    hop_tiles: Int32,
):
    """Ask for the unit at `place` (tile, unit, units left) into stage `slot`, and go on to the warp's next.

    at: where this lane's part of the tile begins; with picks, how far behind the bases of each.
    """
    if place[2] > 0:
        unit = place[1]
        inside = unit
        moves = steps(fmt, exact)
        begin = values_of(at, len(moves))
        if cutlass.const_expr(run.pick_of is not None):
            pick = run.pick_of(unit)
            inside = unit - pick * run.row_units
            codes, scales = run.bases(pick)
            begin = [codes + wide(distance) for distance in begin[:-1]] + [scales + wide(begin[-1])]
        here = [address + wide(inside) * move for address, move in zip(begin, moves, strict=True)]
        copy_unit(fmt, exact, here, lane, slot, inside, run.k)
        tile = place[0] + hop_tiles
        following = unit + hop
        if following >= run.units:
            following = following - run.units
            tile = tile + 1
        if (tile != place[0]) & (place[2] > 1):
            put(at, locate(tile, Int32(0)))
        place[0] = tile
        place[1] = following
        place[2] = place[2] - 1
    cute.arch.cp_async_commit_group()


@cute.jit
def walk(
    fmt: cutlass.Constexpr,
    exact: cutlass.Constexpr,
    stages: cutlass.Constexpr,
    locate: cutlass.Constexpr,
    begin: cutlass.Constexpr,
    hold: cutlass.Constexpr,
    factor: cutlass.Constexpr,
    store: cutlass.Constexpr,
    run: cutlass.Constexpr,
    shared: Int32,
    x_shared: Int32,
    zeros: Int32,
    full: cutlass.Constexpr,
):
    """Go through the run.

    begin: as in `gemv.walk`; locate(tile, 0): where this lane's part of a tile begins, Int64 addresses or,
    with picks, Int32 distances; factor(unit): what its sums are multiplied by, or None; hold(tile, row): what
    `store` will need for a row of a tile; store(tile, row, sum, held): called by all lanes of a warp or none.
    zeros: where ZEROS_BYTES of shared memory are free (NVFP4). full: every stage is asked for before x, and
    again when it is done with, instead of all but one, and before the next is worked on; for all products it
    is no gain (docs/performance.md).
    """
    tid, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(tid >> 5)
    units = run.units
    tiles = tiles_at_once(fmt, units if run.row_units is None else run.row_units)
    ring = shared + tiles * TILE_BYTES
    lane = Lane(tid & 31, (tid & 31) >> 2, tid & 3, ring + warp * (stages * STAGE_BYTES))
    hop_tiles = Int32(WARPS) // units
    hop = WARPS - hop_tiles * units
    start = run.first + warp
    tile = start // units
    unit = start - tile * units
    kind = Int64 if run.pick_of is None else Int32
    at = cute.make_rmem_tensor((len(steps(fmt, exact)),), kind)
    place = cute.make_rmem_tensor((3,), Int32)
    put(place, [tile, unit, (cutlass.max(run.last - start, 0) + (WARPS - 1)) >> 3])
    if place[2] > 0:
        put(at, locate(tile, Int32(0)))
    for slot in cutlass.range(stages if full else stages - 1, unroll=1):
        _ask(fmt, exact, locate, lane, at, place, run, slot, hop, hop_tiles)
    nothing = [Float32(0.0)] * 4
    _clear(shared, tiles, tid)
    if cutlass.const_expr(fmt is NVFP4) and tid < ZEROS_BYTES // 16:
        ptx.shared_store_f32x4(zeros + tid * 16, nothing)
    begin()
    x = _columns(fmt, lane, x_shared, zeros)
    sums = cute.make_rmem_tensor((4,), Float32)
    sums.fill(0.0)
    slot = Int32(0)
    free = Int32(stages - 1)
    row = tid & 15
    for some in cutlass.range(run.first // units, (run.last + units - 1) // units, tiles, unroll=1):
        own = some + (tid >> 4)
        held = hold(own, row)
        stop = cutlass.min(run.last, (some + tiles) * units)
        for number in cutlass.range(start, stop, WARPS, unroll=1):
            cute.arch.cp_async_wait_group(stages - 1 if full else stages - 2)
            cute.arch.sync_warp()
            if cutlass.const_expr(not full):
                _ask(fmt, exact, locate, lane, at, place, run, free, hop, hop_tiles)
                free = slot
            products = _products(fmt, lane, lane.ring + slot * STAGE_BYTES, x, unit)
            if cutlass.const_expr(factor is not None):
                times = factor(unit)
                products = [value * times for value in products]
            put(sums, [sums[i] + products[i] for i in range(4)])
            if cutlass.const_expr(full):
                cute.arch.sync_warp()  # all lanes have read the stage
                _ask(fmt, exact, locate, lane, at, place, run, slot, hop, hop_tiles)
            slot = slot + 1
            if slot == stages:
                slot = Int32(0)
            here = tile
            tile = tile + hop_tiles
            unit = unit + hop
            if unit >= units:
                unit = unit - units
                tile = tile + 1
            if (tile != here) | (number + WARPS >= run.last):
                place_of = shared + (here - some) * TILE_BYTES + warp * WARP_BYTES
                _leave(fmt, values_of(sums, 4), lane, place_of)
                sums.fill(0.0)
        start = start + ((cutlass.max(stop - start, 0) + (WARPS - 1)) & -WARPS)
        cute.arch.sync_threads()
        if tid < tiles * 16:
            mine = shared + (tid >> 4) * TILE_BYTES + row * 4
            total = Float32(0.0)
            for other in cutlass.range_constexpr(WARPS):
                total = total + ptx.shared_load_f32(mine + other * WARP_BYTES)
            store(own, row, total * unscaled(fmt), held)
        if stop < run.last:
            # A tile of fewer than 8 units leaves some warps' places as they are.
            cute.arch.sync_threads()
            _clear(shared, tiles, tid)
            cute.arch.sync_threads()


@cute.jit
def _clear(shared: Int32, tiles: Int32, tid: Int32):
    for place in cutlass.range(tid * 16, tiles * TILE_BYTES, THREADS * 16, unroll=1):
        ptx.shared_store_f32x4(shared + place, [Float32(0.0)] * 4)


def unscaled(fmt: Any) -> float:
    """What sums here are multiplied by in the end: codes and block scales are halves of small powers."""
    return decode.ONE_ROW_UNSCALE if fmt is NVFP4 else 1.0


def _columns(fmt: Any, lane: Lane, x: Any, zeros: Any) -> list[Any]:
    """Where a lane's part of B begins, and how far it moves with a unit: x, or zeros that stay; of NVFP4 for
    first and for second blocks.
    """
    own = x + lane.t * 16
    if fmt is not NVFP4:
        return [own]
    first, second = lane.g == lane.t, lane.g == lane.t + 4
    moves = fmt.unit * 2
    return [
        arithmetic.pick(first, own, zeros),
        arithmetic.pick(first, Int32(moves), Int32(0)),
        arithmetic.pick(second, own, zeros),
        arithmetic.pick(second, Int32(moves), Int32(0)),
    ]


def _products(fmt: Any, lane: Lane, stage: Any, x: list[Any], unit: Any) -> list[Any]:
    """A unit's four sums of this lane."""
    if fmt is not NVFP4:
        return TIMES[fmt.name](lane, stage, pieces(x[0] + unit * (fmt.unit * 2)))
    return _times_nvfp4(lane, stage, pieces(x[0] + unit * x[1]), pieces(x[2] + unit * x[3]))


def _times_nvfp4(
    lane: Lane, stage: Any, first: Callable[[int], Any], second: Callable[[int], Any]
) -> list[Any]:
    """Columns 2t and 2t + 1 of both rows, scaled. Their blocks are those of lanes 2t % 4 and 2t % 4 + 1."""
    at = stage + 2048 + lane.g * 16 + (lane.t & 1) * 8
    selector = 0x6420 + (lane.t >> 1) * 0x1111
    scales = [decode.nvfp4_block_scales(ptx.shared_load_64(at + high * 128), selector) for high in range(2)]
    codes = [chunks(lane, stage, chunk) for chunk in range(2)]
    # Both chunks at a time: one alone would have to wait for each product before the next.
    sums = [[Float32(0.0)] * 4 for _ in range(2)]
    operands: list[Any] = [None, None]
    for word in range(4):
        for half in range(2):
            for chunk in range(2):
                low, high = codes[chunk]
                if half == 0:
                    decoded = [decode.nvfp4_codes(low[word]), decode.nvfp4_codes(high[word])]
                    operands[chunk] = decoded, (first if word < 2 else second)(4 * chunk + word)
                (a_low, a_high), b = operands[chunk]
                a = [a_low[2 * half], a_high[2 * half], a_low[2 * half + 1], a_high[2 * half + 1]]
                sums[chunk] = arithmetic.mma_f16(sums[chunk], a, b[2 * half : 2 * half + 2])
    return [sums[0][i] * scales[i // 2][0][i % 2] + sums[1][i] * scales[i // 2][1][i % 2] for i in range(4)]


@cute.jit
def _leave(fmt: cutlass.Constexpr, sums: list[Float32], lane: cutlass.Constexpr, to: Int32):
    """A warp's 16 sums of a tile into shared memory."""
    if cutlass.const_expr(fmt is NVFP4):
        low, high = sums[0] + sums[1], sums[2] + sums[3]
        odd = (lane.t & 1) != 0
        kept, sent = arithmetic.pick(odd, high, low), arithmetic.pick(odd, low, high)
        kept = kept + cute.arch.shuffle_sync_bfly(sent, 1)
        kept = kept + cute.arch.shuffle_sync_bfly(kept, 2)
        if lane.t < 2:
            ptx.shared_store_f32(to + (lane.g + lane.t * 8) * 4, kept)
    elif lane.t == 0:
        # All columns of B are x.
        ptx.shared_store_f32(to + lane.g * 4, sums[0])
        ptx.shared_store_f32(to + (lane.g + 8) * 4, sums[2])
