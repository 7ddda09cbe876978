"""The walk of `gemv` for one row of activations, where every warp counts and nothing waits for a tile's end.

A tile's columns are steps of one unit, of NVFP4 two: what a step takes beside its products is half of them
otherwise. A block has a run of steps, tile after tile, and its 8 warps take every eighth of them wherever a
tile ends. A warp leaves its 16 sums of a tile in shared memory; the block adds them up once for TILES tiles.
A run may begin and end within a tile (split): then the tile's result comes in two parts, that of the block
which has its beginning and that of the next.

NVFP4: what 8 columns of B are good for. Column n has x only where lane n % 4 holds its first (n < 4) or
second block of 16 codes, zeros elsewhere; so each column of the product belongs to one block scale, which is
applied to the sum instead of the codes: 8 multiplications a lane and unit instead of 64.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import decode, ptx
from dsv4chat.kernels.cute.gemv import SUMS_BYTES, WARPS, put, values_of
from dsv4chat.kernels.cute.units import NVFP4, STAGE_BYTES, TIMES, Lane, chunks, copy_unit, pieces, wide

TILES = 8  # added up at a time
WARP_BYTES = 16 * 4  # a warp's sums of a tile
TILE_BYTES = WARPS * WARP_BYTES
ZEROS_BYTES = 512  # as much as a unit's x


def halves(fmt: Any) -> int:
    """Units of a step."""
    return 2 if fmt is NVFP4 else 1


def steps_of(fmt: Any, k: Any) -> Any:
    """Steps of a row of k columns, the last perhaps short."""
    columns = fmt.unit * halves(fmt)
    return (k + (columns - 1)) >> (columns.bit_length() - 1)


@dataclass(frozen=True)
class Run:
    """A block's steps, numbered tile after tile; all Int32 of the kernel.

    steps: of a tile; first, last: the run; k: columns of a row, units: units of it. row_steps, pick_of: where
    a tile's columns are several rows one behind the other (picks), steps of a row and a step's row.
    """

    steps: Any
    first: Any
    last: Any
    k: Any
    units: Any
    row_steps: Any = None
    pick_of: Any = None

    def inside(self, step: Any) -> Any:
        """The step's number within its row."""
        return step if self.pick_of is None else step - self.pick_of(step) * self.row_steps

    def holds(self, tile: Any) -> Any:
        """Whether some of the tile, which is not before the run, is this block's."""
        return tile * self.steps < self.last

    def begun(self, tile: Any) -> Any:
        """Whether the tile's first step is this block's."""
        return tile * self.steps >= self.first

    def whole(self, tile: Any) -> Any:
        """Whether the tile is this block's alone."""
        return (tile * self.steps >= self.first) & ((tile + 1) * self.steps <= self.last)


def run_of(block: Any, shares: tuple[Any, Any, Any], steps: Any, k: Any, units: Any, *picks: Any) -> Run:
    """Block number `block`. shares: portion, rest, split: `portion` tiles, of the first `rest` blocks one
    more; with split, steps.
    """
    portion, rest, split = shares
    grain = ptx.pick(split == 0, steps, Int32(1))
    first = block * portion + cutlass.min(block, rest)
    count = portion + (block < rest).to(Int32)
    return Run(steps, first * grain, (first + count) * grain, k, units, *picks)


@cute.jit
def _ask(
    fmt: cutlass.Constexpr,
    exact: cutlass.Constexpr,
    half: cutlass.Constexpr,
    lane: cutlass.Constexpr,
    at: cutlass.Constexpr,
    place: cutlass.Constexpr,
    run: cutlass.Constexpr,
    slot: Int32,
):
    """Ask for a unit of the step at `place` (tile, step, steps left) into stage `slot`. at: where this lane's
    part of the row begins.
    """
    if place[2] > 0:
        unit = run.inside(place[1]) * halves(fmt) + half
        there = unit if exact else cutlass.min(unit, run.units - 1)
        here = [at[i] + wide(unit) * 128 for i in range(4)] + [at[4] + wide(there) * fmt.scale_bytes]
        copy_unit(fmt, exact, here, lane, slot, unit, run.k)
    cute.arch.cp_async_commit_group()


@cute.jit
def _advance(
    locate: cutlass.Constexpr,
    at: cutlass.Constexpr,
    place: cutlass.Constexpr,
    run: cutlass.Constexpr,
    hop: Int32,
    hop_tiles: Int32,
):
    """On to the warp's next step."""
    step = place[1]
    tile = place[0] + hop_tiles
    following = step + hop
    if following >= run.steps:
        following = following - run.steps
        tile = tile + 1
    another = tile != place[0]
    if cutlass.const_expr(run.pick_of is not None):
        another = another | (run.inside(step) + WARPS >= run.row_steps)
    if (place[2] > 1) & another:
        put(at, locate(tile, following - run.inside(following)))
    place[0] = tile
    place[1] = following
    place[2] = place[2] - 1


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
):
    """Go through the run.

    begin: as in `gemv.walk`; locate(tile, step), for the first step of a row: where this lane's part of the
    row begins; factor(step): what its sums are multiplied by, or None; hold(tile, row): what `store` will
    need for a row of a tile; store(tile, row, sum, held): called by half the block, of each warp all lanes.
    stages: of a warp, a multiple of a step's units; zeros: where ZEROS_BYTES of shared memory are free (NVFP4).
    """
    tid, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(tid >> 5)
    lane = Lane(tid & 31, (tid & 31) >> 2, tid & 3, shared + SUMS_BYTES + warp * (stages * STAGE_BYTES))
    a_step = halves(fmt)
    steps = run.steps
    hop_tiles = Int32(WARPS) // steps
    hop = WARPS - hop_tiles * steps
    start = run.first + warp
    tile = start // steps
    step = start - tile * steps
    at = cute.make_rmem_tensor((5,), Int64)
    place = cute.make_rmem_tensor((3,), Int32)
    put(place, [tile, step, (cutlass.max(run.last - start, 0) + (WARPS - 1)) >> 3])
    if place[2] > 0:
        put(at, locate(tile, step - run.inside(step)))
    for slot in cutlass.range(0, stages, a_step, unroll=1):
        for half in cutlass.range_constexpr(a_step):
            _ask(fmt, exact, half, lane, at, place, run, slot + half)
        _advance(locate, at, place, run, hop, hop_tiles)
    nothing = [Float32(0.0)] * 4
    ptx.shared_store_f32x4(shared + tid * 16, nothing)
    if cutlass.const_expr(fmt is NVFP4) and tid < ZEROS_BYTES // 16:
        ptx.shared_store_f32x4(zeros + tid * 16, nothing)
    begin()
    x = _columns(fmt, lane, x_shared, zeros)
    sums = cute.make_rmem_tensor((4,), Float32)
    sums.fill(0.0)
    slot = Int32(0)
    row = tid & 15
    for some in cutlass.range(run.first // steps, (run.last + steps - 1) // steps, TILES, unroll=1):
        own = some + (tid >> 4)
        held = hold(own, row)
        stop = cutlass.min(run.last, (some + TILES) * steps)
        for number in cutlass.range(start, stop, WARPS, unroll=1):
            times = 1.0 if factor is None else factor(step)
            for half in cutlass.range_constexpr(a_step):
                cute.arch.cp_async_wait_group(stages - 1)
                cute.arch.sync_warp()
                stage = lane.ring + (slot + half) * STAGE_BYTES
                products = _products(fmt, lane, stage, x, step, half)
                put(sums, [sums[i] + products[i] * times for i in range(4)])
                cute.arch.sync_warp()
                _ask(fmt, exact, half, lane, at, place, run, slot + half)
            _advance(locate, at, place, run, hop, hop_tiles)
            slot = slot + a_step
            if slot == stages:
                slot = Int32(0)
            here = tile
            tile = tile + hop_tiles
            step = step + hop
            if step >= steps:
                step = step - steps
                tile = tile + 1
            if (tile != here) | (number + WARPS >= run.last):
                place_of = shared + (here - some) * TILE_BYTES + warp * WARP_BYTES
                _leave(fmt, values_of(sums, 4), lane, place_of)
                sums.fill(0.0)
        start = start + ((cutlass.max(stop - start, 0) + (WARPS - 1)) & -WARPS)
        cute.arch.sync_threads()
        if tid < TILES * 16:
            mine = shared + (tid >> 4) * TILE_BYTES + row * 4
            total = Float32(0.0)
            for other in cutlass.range_constexpr(WARPS):
                total = total + ptx.shared_load_f32(mine + other * WARP_BYTES)
            store(own, row, total * unscaled(fmt), held)
        if stop < run.last:
            # A tile of fewer than 8 steps leaves some warps' places as they are.
            cute.arch.sync_threads()
            ptx.shared_store_f32x4(shared + tid * 16, nothing)
            cute.arch.sync_threads()


@cute.jit
def store_part(
    run: cutlass.Constexpr, split: Int32, tile: Int32, there: Any, at: Int64, stride: Int32, value: Float32
):
    """A row's sum, `there` or nothing; of a tile that is not cut the other part is zero."""
    if there:
        begun = run.begun(tile)
        part = at + wide(ptx.pick(begun, Int32(0), stride)) * 4
        ptx.store_f32(part, value)
        if (split != 0) & run.whole(tile):
            ptx.store_f32(at + wide(stride) * 4, Float32(0.0))


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
        ptx.pick(first, own, zeros),
        ptx.pick(first, Int32(moves), Int32(0)),
        ptx.pick(second, own, zeros),
        ptx.pick(second, Int32(moves), Int32(0)),
    ]


def _products(fmt: Any, lane: Lane, stage: Any, x: list[Any], step: Any, half: int) -> list[Any]:
    """A unit's four sums of this lane."""
    if fmt is not NVFP4:
        return TIMES[fmt.name](lane, stage, pieces(x[0] + step * (fmt.unit * 2)))
    unit = step * 2 + half
    return _times_nvfp4(lane, stage, pieces(x[0] + unit * x[1]), pieces(x[2] + unit * x[3]))


def _times_nvfp4(
    lane: Lane, stage: Any, first: Callable[[int], Any], second: Callable[[int], Any]
) -> list[Any]:
    """Columns 2t and 2t + 1 of both rows, scaled. Their blocks are those of lanes 2t % 4 and 2t % 4 + 1."""
    at = stage + 2048 + lane.g * 16 + (lane.t & 1) * 8
    selector = 0x6420 + (lane.t >> 1) * 0x1111
    scales = [decode.nvfp4_block_scales(ptx.shared_load_64(at + high * 128), selector) for high in range(2)]
    result = [Float32(0.0)] * 4
    for chunk in range(2):
        low, high = chunks(lane, stage, chunk)
        sums = [Float32(0.0)] * 4
        for word in range(4):
            a_low, a_high = decode.nvfp4_codes(low[word]), decode.nvfp4_codes(high[word])
            b = (first if word < 2 else second)(4 * chunk + word)
            for half in range(2):
                a = [a_low[2 * half], a_high[2 * half], a_low[2 * half + 1], a_high[2 * half + 1]]
                sums = ptx.mma_f16(sums, a, b[2 * half : 2 * half + 2])
        result = [result[i] + sums[i] * scales[i // 2][chunk][i % 2] for i in range(4)]
    return result


@cute.jit
def _leave(fmt: cutlass.Constexpr, sums: list[Float32], lane: cutlass.Constexpr, to: Int32):
    """A warp's 16 sums of a tile into shared memory."""
    if cutlass.const_expr(fmt is NVFP4):
        low, high = sums[0] + sums[1], sums[2] + sums[3]
        odd = (lane.t & 1) != 0
        kept, sent = ptx.pick(odd, high, low), ptx.pick(odd, low, high)
        kept = kept + cute.arch.shuffle_sync_bfly(sent, 1)
        kept = kept + cute.arch.shuffle_sync_bfly(kept, 2)
        if lane.t < 2:
            ptx.shared_store_f32(to + (lane.g + lane.t * 8) * 4, kept)
    elif lane.t == 0:
        # All columns of B are x.
        ptx.shared_store_f32(to + lane.g * 4, sums[0])
        ptx.shared_store_f32(to + (lane.g + 8) * 4, sums[2])
