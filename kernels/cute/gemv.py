"""Products of stored weight matrices with 1 to 8 rows of activations, at the speed of memory.

One warp takes 16 rows of the matrix at a time and multiplies them on the tensor cores: the weights are the A
operand, the activation rows the 8 columns of B, so that 8 rows cost what 1 costs. It goes through a row tile
unit by unit (`units`) and copies units into shared memory with cp.async, stages - 1 of them ahead of the one
it works on: no registers are held by what is on its way.

`wk` of a block's 8 warps share the columns of a row tile (unit number modulo wk), 8 / wk tiles go on at once;
their sums meet in shared memory. A block walks over its tiles; the first weights are asked for before the
block waits for the kernel that makes x (programmatic dependent launch). The float32 factor of an NVFP4
matrix, one a row, is applied to the sums.

`one_row` is another way through the same units, for one row of activations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, ptx
from dsv4chat.kernels.cute.units import STAGE_BYTES, TIMES, Lane, copy_unit, pieces, steps, wide

WARPS = 8
THREADS = 32 * WARPS
SUMS_BYTES = THREADS * 16  # four float32 a lane


@dataclass(frozen=True)
class Work:
    """What some blocks share out, and how; all Int32 of the kernel.

    tiles; units of a tile; k: columns of a row; wk_bits: the logarithm of wk; block, blocks: which of how
    many.
    """

    tiles: Any
    units: Any
    k: Any
    wk_bits: Any
    block: Any
    blocks: Any


@cute.jit
def _ask(
    fmt: cutlass.Constexpr,
    exact: cutlass.Constexpr,
    locate: cutlass.Constexpr,
    lane: cutlass.Constexpr,
    at: cutlass.Constexpr,
    place: cutlass.Constexpr,
    work: cutlass.Constexpr,
    slot: Int32,
    kw: Int32,
    step: Int32,
):
    """Ask for the unit at `place` (tile, unit) into stage `slot`, and go on to this warp's next one.

    at: where this lane's part of it begins.
    """
    tile = place[0]
    unit = place[1]
    if tile < work.tiles:
        copy_unit(fmt, exact, values_of(at, len(steps(fmt, exact))), lane, slot, unit, work.k)
        wk = Int32(1) << work.wk_bits
        following = unit + wk
        if following >= work.units:
            following = kw
            tile = tile + step
            if tile < work.tiles:
                put(at, locate(tile, following))
        else:
            put(at, [at[i] + wide(wk * move) for i, move in enumerate(steps(fmt, exact))])
        place[0] = tile
        place[1] = following
    cute.arch.cp_async_commit_group()


@cute.jit
def walk(
    fmt: cutlass.Constexpr,
    exact: cutlass.Constexpr,
    stages: cutlass.Constexpr,
    locate: cutlass.Constexpr,
    begin: cutlass.Constexpr,
    hold: cutlass.Constexpr,
    store: cutlass.Constexpr,
    work: cutlass.Constexpr,
    shared: Int32,
    x_shared: Int32,
    x_stride: Int32,
    rows: Int32,
):
    """This block's tiles, this warp's units of each.

    shared: the sums, then each warp's stages. locate(tile, unit): where this lane's part of a unit begins
    (`rows_at`); begin(): what must happen before x is used; hold(tile): what `store` will need, asked for
    early; store(tile, sums, held): the tile's sums, complete.
    """
    tid, _, _ = cute.arch.thread_idx()
    block, blocks = work.block, work.blocks
    warp = cute.arch.make_warp_uniform(tid >> 5)
    lane = Lane(tid & 31, (tid & 31) >> 2, tid & 3, shared + SUMS_BYTES + warp * (stages * STAGE_BYTES))
    wk = Int32(1) << work.wk_bits
    kw = warp & (wk - 1)
    group = warp >> work.wk_bits
    at_once = Int32(WARPS) >> work.wk_bits
    step = blocks * at_once
    at = cute.make_rmem_tensor((len(steps(fmt, exact)),), Int64)
    place = cute.make_rmem_tensor((2,), Int32)
    put(place, [block * at_once + group, kw])
    if place[0] < work.tiles:
        put(at, locate(place[0], kw))
    for slot in cutlass.range(stages - 1, unroll=1):
        _ask(fmt, exact, locate, lane, at, place, work, slot, kw, step)
    begin()
    # A column of B without a row of its own repeats the last one: nobody stores what comes of it.
    x_lane = x_shared + cutlass.min(lane.g, rows - 1) * x_stride + lane.t * 16
    slot = Int32(0)
    free = Int32(stages - 1)
    for first in cutlass.range(block * at_once, work.tiles, step, unroll=1):
        tile = first + group
        sums = cute.make_rmem_tensor((4,), Float32)
        sums.fill(0.0)
        held = hold(cutlass.min(tile, work.tiles - 1))
        if tile < work.tiles:
            for unit in cutlass.range(kw, work.units, wk, unroll=1):
                cute.arch.cp_async_wait_group(stages - 2)
                cute.arch.sync_warp()
                _ask(fmt, exact, locate, lane, at, place, work, free, kw, step)
                here = x_lane + unit * (fmt.unit * 2)
                stage = lane.ring + slot * STAGE_BYTES
                products = TIMES[fmt.name](lane, stage, pieces(here))
                put(sums, [sums[i] + products[i] for i in range(4)])
                free = slot
                slot = slot + 1
                if slot == stages:
                    slot = Int32(0)
        if wk > 1:
            # Only the warps that share a tile wait for each other: barrier 0 is the block's.
            cute.arch.barrier(barrier_id=1 + group, number_of_threads=wk * 32)
            ptx.shared_store_f32x4(shared + tid * 16, values_of(sums, 4))
            cute.arch.barrier(barrier_id=1 + group, number_of_threads=wk * 32)
            if kw == 0:
                for other in cutlass.range(1, wk, unroll=1):
                    more = ptx.shared_load_f32x4(shared + (tid + other * 32) * 16)
                    put(sums, [sums[i] + more[i] for i in range(4)])
        if (kw == 0) & (tile < work.tiles):
            store(tile, values_of(sums, 4), held)


def put(registers: Any, values: Sequence[Any]) -> int:
    """Write values into a register tensor; returns how many."""
    for i, value in enumerate(values):
        registers[i] = value
    return len(values)


def values_of(registers: Any, count: int) -> list[Any]:
    """The first `count` registers."""
    return [registers[i] for i in range(count)]


def load_factor(factors: Any, index: Any) -> Any:
    """Float32 number `index` of an array, or 1 where the array's address is 0."""
    there = (factors != 0).to(Int32)
    value = ptx.load_f32_if(factors + wide(index * 4), there)
    return arithmetic.pick(there != 0, value, Float32(1.0))
