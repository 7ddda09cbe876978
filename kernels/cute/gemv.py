"""Products of stored weight matrices with 1 to 8 rows of activations, at the speed of memory.

One warp takes 16 rows of the matrix at a time and multiplies them on the tensor cores: the weights are the A
operand, the activation rows the 8 columns of B, so that 8 rows cost what 1 costs. The order of the columns
within a product is free as long as A and B agree, so a lane takes 16 bytes of a row as they are stored:

    unit = 128 bytes of each of the 16 rows = 2 chunks of (4 lanes x 16 bytes), with their scales

Each warp copies its units into shared memory with cp.async, STAGES - 1 of them ahead of the one it works on:
no registers are held by what is on its way. In a stage the two halves of odd rows change places, so that
reading a chunk of two rows meets all banks.

`wk` of a block's 8 warps share the columns of a row tile (unit number modulo wk), 8 / wk tiles go on at once;
their sums meet in shared memory. A block walks over its tiles; the first weights are asked for before the
block waits for the kernel that makes x (programmatic dependent launch).

Layouts: codes as stored; NVFP4 block scales in the order in which lanes need them (`arrange.quad_scales`);
FP8 tile scales as float32; the float32 factor of an NVFP4 matrix one a row, applied to the sums.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import decode, ptx

WARPS = 8
THREADS = 32 * WARPS
STAGE_BYTES = 16 * 128 + 16 * 16  # codes, scales
SUMS_BYTES = THREADS * 16  # four float32 a lane


@dataclass(frozen=True)
class Format:
    """How a format's unit is laid out.

    columns: what a lane reads as one 16-byte chunk; order: which of eight columns lie where in a 16-byte
    piece of x; scale_bytes: of a unit and row (of a unit and tile for FP8); stages: of a warp;
    blocks: of a multiprocessor at a time. NVFP4, whose decoding takes the most instructions, wants more
    warps; the others more bytes on their way.
    """

    name: str
    columns: int
    scale_bytes: int
    order: tuple[int, ...]
    stages: int
    blocks: int
    bfloat: bool = False

    @property
    def unit(self) -> int:
        """Columns of a unit."""
        return 8 * self.columns

    @property
    def pieces(self) -> int:
        """16-byte pieces of x a chunk meets."""
        return self.columns // 8

    @property
    def row_bits(self) -> int:
        """Bits of a column."""
        return 128 // self.columns


PLAIN_ORDER = tuple(range(8))
NVFP4 = Format("nvfp4", 32, 16, decode.PAIR_ORDER, stages=3, blocks=3)
FP8 = Format("fp8", 16, 4, PLAIN_ORDER, stages=5, blocks=2)
BF16 = Format("bf16", 8, 0, PLAIN_ORDER, stages=5, blocks=2, bfloat=True)
FORMATS = (NVFP4, FP8, BF16)


def _wide(value: Any) -> Any:
    return value.to(Int64)


@dataclass(frozen=True)
class Lane:
    """What a lane knows about itself: its number, row g and place t of its quad, its warp's stages."""

    lane: Any
    g: Any
    t: Any
    ring: Any


def _copy_unit(fmt: Format, exact: bool, at: Sequence[Any], lane: Lane, slot: Any, unit: Any, k: Any) -> None:
    """Ask for a unit into stage `slot`. at: this lane's part, as `locate` gives it.

    Unless `exact` (k is a multiple of the unit) what lies beyond the last column is read again from within:
    its x is zero.
    """
    stage = lane.ring + slot * STAGE_BYTES
    chunk = lane.lane & 7
    back = Int32(0)
    if not exact:
        back = cutlass.min((k >> (fmt.columns.bit_length() - 1)) - 1 - (unit * 8 + chunk), 0) * 16
    for i in range(4):
        row = i * 4 + (lane.lane >> 3)
        address = at[i] if exact else at[i] + _wide(back)
        ptx.copy_async_16(stage + row * 128 + (chunk ^ ((row & 1) << 2)) * 16, address)
    if fmt is NVFP4:
        ptx.copy_async_if(stage + 2048 + lane.lane * 16, at[4], (lane.lane < 16).to(Int32), 16)
    elif fmt is FP8:
        ptx.copy_async_if(stage + 2048 + lane.lane * 4, at[4], (lane.lane < 2).to(Int32), 4)


def _chunks(lane: Lane, stage: Any, chunk: int) -> tuple[Any, Any]:
    """The four words of this lane's chunk in rows g and g + 8."""
    here = stage + lane.g * 128 + ((chunk * 4 + lane.t) ^ ((lane.g & 1) << 2)) * 16
    return ptx.shared_load_128(here), ptx.shared_load_128(here + 1024)


def _times_nvfp4(lane: Lane, stage: Any, x: Callable[[int], Any]) -> list[Any]:
    sums = [[Float32(0.0)] * 4, [Float32(0.0)] * 4]
    here = stage + 2048 + lane.g * 16 + lane.t * 4
    scales = [decode.nvfp4_scales(ptx.shared_load_32(here + high * 128)) for high in range(2)]
    for chunk in range(2):
        low, high = _chunks(lane, stage, chunk)
        for word in range(4):
            block = 2 * chunk + word // 2
            a_low = decode.nvfp4_word(low[word], scales[0][block])
            a_high = decode.nvfp4_word(high[word], scales[1][block])
            b = x(4 * chunk + word)
            for half in range(2):
                a = [a_low[2 * half], a_high[2 * half], a_low[2 * half + 1], a_high[2 * half + 1]]
                sums[half] = ptx.mma_f16(sums[half], a, b[2 * half : 2 * half + 2])
    return [(a + b) * decode.UNSCALE for a, b in zip(*sums, strict=True)]


def _times_fp8(lane: Lane, stage: Any, x: Callable[[int], Any]) -> list[Any]:
    sums = [[Float32(0.0)] * 4, [Float32(0.0)] * 4]
    factors = [ptx.shared_load_f32(stage + 2048 + 4 * high) for high in range(2)]
    for chunk in range(2):
        low, high = _chunks(lane, stage, chunk)
        for word in range(0, 4, 2):
            b = x(2 * chunk + word // 2)
            for half in range(2):
                a_low, a_high = ptx.e4m3_pairs(low[word + half]), ptx.e4m3_pairs(high[word + half])
                a = [a_low[0], a_high[0], a_low[1], a_high[1]]
                sums[half] = ptx.mma_f16(sums[half], a, b[2 * half : 2 * half + 2])
    return [(sums[0][i] + sums[1][i]) * factors[i // 2] for i in range(4)]


def _times_bf16(lane: Lane, stage: Any, x: Callable[[int], Any]) -> list[Any]:
    sums = [[Float32(0.0)] * 4, [Float32(0.0)] * 4]
    for chunk in range(2):
        low, high = _chunks(lane, stage, chunk)
        b = x(chunk)
        for half in range(2):
            a = [low[2 * half], high[2 * half], low[2 * half + 1], high[2 * half + 1]]
            sums[half] = ptx.mma_bf16(sums[half], a, b[2 * half : 2 * half + 2])
    return [a + b for a, b in zip(*sums, strict=True)]


_TIMES = {"nvfp4": _times_nvfp4, "fp8": _times_fp8, "bf16": _times_bf16}


@cute.jit
def stage(
    fmt: cutlass.Constexpr,
    source: Int64,
    kind: Int32,
    stride: Int32,
    rows: Int32,
    k: Int32,
    shared: Int32,
    shared_stride: Int32,
    units: Int32,
):
    """Copy rows of activations into shared memory, in the order in which lanes meet them, zeros from k on.

    kind: 0 bfloat16, 1 half, 2 float32; stride: elements between rows of `source`.
    """
    for row in cutlass.range(rows, unroll=1):
        here = source + row.to(Int64) * stride.to(Int64) * x_bytes(kind)
        there = shared + row * shared_stride
        if kind == 0:
            _stage_row(fmt, 0, here, k, there, units)
        elif kind == 1:
            _stage_row(fmt, 1, here, k, there, units)
        else:
            _stage_row(fmt, 2, here, k, there, units)


@cute.jit
def _stage_row(
    fmt: cutlass.Constexpr, kind: cutlass.Constexpr, source: Int64, k: Int32, shared: Int32, units: Int32
):
    """One row; a thread asks for two pieces before it uses the first."""
    tid, _, _ = cute.arch.thread_idx()
    pieces = units * (fmt.unit // 8)
    for piece in cutlass.range(tid, pieces, 2 * THREADS, unroll=1):
        places = [piece, piece + THREADS]
        columns = [_column(fmt, place) for place in places]
        read = [_eight(kind, source, cutlass.min(column, k - 8)) for column in columns]
        for i in cutlass.range_constexpr(2):
            if places[i] < pieces:
                words = _in_order(fmt, kind, read[i])
                inside = columns[i] < k
                ptx.shared_store_128(
                    shared + places[i] * 16, [ptx.pick(inside, word, Int32(0)) for word in words]
                )


def _column(fmt: Format, piece: Any) -> Any:
    """The first of the eight columns that lie in a piece of x."""
    quad = 4 * fmt.pieces
    chunk, rest = piece >> (quad.bit_length() - 1), piece & (quad - 1)
    return (chunk * 4 + (rest & 3)) * fmt.columns + (rest >> 2) * 8


def _eight(kind: int, source: Any, column: Any) -> list[Any]:
    """The words of eight activations from `column` on."""
    if kind < 2:
        return list(ptx.load_128(source + _wide(column * 2)))
    at = source + _wide(column * 4)
    return list(ptx.load_128(at)) + list(ptx.load_128(at + 16))


def _in_order(fmt: Format, kind: int, words: list[Any]) -> list[Any]:
    """Eight activations as four pairs of the type the tensor cores take, in the format's order."""
    if kind == 2:
        values = [ptx.bits_to_f32(word) for word in words]
    else:
        unpack = ptx.unpack_bf16 if kind == 0 else ptx.unpack_f16
        values = [value for word in words for value in unpack(word)]
    pack = ptx.pack_bf16 if fmt.bfloat else ptx.pack_f16
    return [pack(values[fmt.order[2 * i]], values[fmt.order[2 * i + 1]]) for i in range(4)]


@dataclass(frozen=True)
class Work:
    """What the blocks of a launch share out, and how; all Int32 of the kernel.

    tiles; units of a tile; k: columns of a row; wk_bits: the logarithm of wk. row_units: units of a row,
    where a tile's columns are several rows one behind the other (picks): then `pick_of`(unit) is the row's
    number.
    """

    tiles: Any
    units: Any
    k: Any
    wk_bits: Any
    row_units: Any = None
    pick_of: Any = None

    def inside(self, unit: Any) -> Any:
        """The unit's number within its row."""
        return unit if self.pick_of is None else unit - self.pick_of(unit) * self.row_units


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
        inside = work.inside(unit)
        _copy_unit(fmt, exact, _all(at, 5), lane, slot, inside, work.k)
        wk = Int32(1) << work.wk_bits
        following = unit + wk
        if following >= work.units:
            following = kw
            tile = tile + step
            if tile < work.tiles:
                _put(at, locate(tile, following))
        elif cutlass.const_expr(work.pick_of is not None) and inside + wk >= work.row_units:
            _put(at, locate(tile, following))
        else:
            codes = _wide(wk * 128)
            _put(at, [at[i] + codes for i in range(4)] + [at[4] + _wide(wk * fmt.scale_bytes)])
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
    factor: cutlass.Constexpr,
    store: cutlass.Constexpr,
    work: cutlass.Constexpr,
    shared: Int32,
    x_shared: Int32,
    x_stride: Int32,
    rows: Int32,
):
    """The loop of all kernels here: this block's tiles, this warp's units of each.

    shared: the sums, then each warp's stages. locate(tile, unit): where this lane's part of a unit begins
    (`rows_at`); begin(): what must happen before x is used; hold(tile): what `store` will need, asked for
    early; factor(unit): what a unit's sums are multiplied by, or None; store(tile, sums, held): the tile's
    sums, complete.
    """
    tid, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    warp = cute.arch.make_warp_uniform(tid >> 5)
    lane = Lane(tid & 31, (tid & 31) >> 2, tid & 3, shared + SUMS_BYTES + warp * (stages * STAGE_BYTES))
    wk = Int32(1) << work.wk_bits
    kw = warp & (wk - 1)
    group = warp >> work.wk_bits
    at_once = Int32(WARPS) >> work.wk_bits
    step = blocks * at_once
    at = cute.make_rmem_tensor((5,), Int64)
    place = cute.make_rmem_tensor((2,), Int32)
    _put(place, [block * at_once + group, kw])
    if place[0] < work.tiles:
        _put(at, locate(place[0], kw))
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
                products = _TIMES[fmt.name](lane, stage, _pieces(here))
                if cutlass.const_expr(factor is not None):
                    times = factor(unit)
                    products = [value * times for value in products]
                _put(sums, [sums[i] + products[i] for i in range(4)])
                free = slot
                slot = slot + 1
                if slot == stages:
                    slot = Int32(0)
        if wk > 1:
            # Only the warps that share a tile wait for each other: barrier 0 is the block's.
            cute.arch.barrier(barrier_id=1 + group, number_of_threads=wk * 32)
            ptx.shared_store_f32x4(shared + tid * 16, _all(sums, 4))
            cute.arch.barrier(barrier_id=1 + group, number_of_threads=wk * 32)
            if kw == 0:
                for other in cutlass.range(1, wk, unroll=1):
                    more = ptx.shared_load_f32x4(shared + (tid + other * 32) * 16)
                    _put(sums, [sums[i] + more[i] for i in range(4)])
        if (kw == 0) & (tile < work.tiles):
            store(tile, _all(sums, 4), held)


def _pieces(first: Any) -> Callable[[int], Any]:
    """A lane's pieces of x at a unit, by number."""
    return lambda piece: ptx.shared_load_128(first + piece * 64)


def _put(registers: Any, values: Sequence[Any]) -> int:
    """Write values into a register tensor; returns how many."""
    for i, value in enumerate(values):
        registers[i] = value
    return len(values)


def _all(registers: Any, count: int) -> list[Any]:
    return [registers[i] for i in range(count)]


def rows_at(fmt: Format, lane: Any, row: Callable[[Any], Any], place: tuple[Any, Any, Any]) -> list[Any]:
    """Where this lane's part of a unit begins: of four rows a chunk each, then the scales it copies.

    row(r): (address of the matrix's codes, of its scales, row in the matrix) for row r of the tile; place:
    (unit within the row, k, units of a row).
    """
    unit, k, row_units = place
    at = []
    for i in range(4):
        codes, _, number = row(i * 4 + (lane >> 3))
        at.append(
            codes + _wide(number) * _wide((k * fmt.row_bits) >> 3) + _wide(unit * 128 + (lane & 7) * 16)
        )
    if fmt is NVFP4:
        _, scales, number = row(lane & 15)
        at.append(scales + _wide(number) * _wide(row_units * 16) + _wide(unit * 16))
    elif fmt is FP8:
        # Lanes 0 and 1 copy the factor of the tile's upper and lower eight rows.
        _, scales, number = row((lane & 1) * 8)
        at.append(scales + _wide((number >> 7) * ((k + 127) >> 7) * 4 + unit * 4))
    else:
        at.append(at[0])
    return at


def x_bytes(kind: Any) -> Any:
    """Bytes of an activation of this kind."""
    return _wide((kind >> 1) * 2 + 2)


def further(address: Any, offset: Any) -> Any:
    """address + offset, or 0 where address is 0."""
    return ptx.pick(address != 0, address + offset, Int64(0))


def units_of(fmt: Format, k: Any) -> Any:
    """Units of a row of k columns, the last perhaps short."""
    return (k + (fmt.unit - 1)) >> (fmt.unit.bit_length() - 1)


def load_factor(factors: Any, index: Any) -> Any:
    """Float32 number `index` of an array, or 1 where the array's address is 0."""
    there = (factors != 0).to(Int32)
    value = ptx.load_f32_if(factors + _wide(index * 4), there)
    return ptx.pick(there != 0, value, Float32(1.0))
