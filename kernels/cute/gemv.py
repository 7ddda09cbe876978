"""Products of stored weight matrices with 1 to 8 rows of activations, at the speed of memory.

One warp takes 16 rows of the matrix at a time and multiplies them on the tensor cores: the weights are the A
operand, the activation rows the 8 columns of B, so that 8 rows cost what 1 costs. The order of the columns
within a product is free as long as A and B agree, so a lane reads 16 bytes of a row as they are stored:

    unit = 4 chunks of (4 lanes x 16 bytes) of two rows, g and g + 8: 8 loads in flight, and the next unit's
    asked for before this one is used

`wk` of a block's 8 warps share the columns of a row tile (unit number modulo wk), 8 / wk tiles go on at once;
their sums meet in shared memory. A block walks over its tiles; the weights of the first tile are asked for
before the block waits for the kernel that makes x (programmatic dependent launch).

Layouts: codes as stored; NVFP4 block scales in the order in which lanes need them (`arrange.quad_scales`);
FP8 tile scales as float32; the float32 factor of an NVFP4 matrix one a row, applied to the sums.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64
from cutlass.cutlass_dsl import select_

from dsv4chat.kernels.cute import decode, ptx

WARPS = 8
THREADS = 32 * WARPS
SEGMENTS = 4
UNIT_BYTES = 256
RED_BYTES = 2 * THREADS * 16  # two rounds of four float32 a lane


@dataclass(frozen=True)
class Format:
    """How a format's unit is laid out: `columns` a lane reads as one 16-byte chunk; `unit` all columns of a
    unit; `order`, which eight columns lie together in a 16-byte piece of x; scale_bytes of a unit and row.
    """

    name: str
    columns: int
    scale_bytes: int
    order: tuple[int, ...]
    bfloat: bool = False

    @property
    def unit(self) -> int:
        return 16 * self.columns

    @property
    def pieces(self) -> int:
        """16-byte pieces of x a chunk meets."""
        return self.columns // 8


PLAIN_ORDER = tuple(range(8))
NVFP4 = Format("nvfp4", 32, 32, decode.PAIR_ORDER)
FP8 = Format("fp8", 16, 8, PLAIN_ORDER)
BF16 = Format("bf16", 8, 0, PLAIN_ORDER, bfloat=True)
FORMATS = (NVFP4, FP8, BF16)


def _wide(value: Any) -> Any:
    return value.to(Int64)


def _load_unit(
    fmt: Format, exact: bool, at: Sequence[Any], unit: Any, t: Any, k: Any, wanted: Any
) -> list[Any]:
    """Ask for a unit: 16 words of the low row, 16 of the high row, then the scales of each.

    at: where this lane's part of the unit begins: low codes, high codes, low scales, high scales. Unless
    `exact` (k is a multiple of the unit) what lies beyond the last column is read again from within: its x is
    zero.
    """
    words: list[Any] = []
    last = k // fmt.columns - 1
    for row in at[:2]:
        for chunk in range(4):
            if exact:
                address = row + 64 * chunk
            else:
                here = unit * 16 + chunk * 4 + t
                address = row + _wide(64 * chunk + (cutlass.min(here, last) - here) * 16)
            words += ptx.stream_128(address, wanted)
    if fmt is NVFP4:
        for scales in at[2:]:
            words += ptx.stream_64(scales, wanted)
    elif fmt is FP8:
        beyond = Int32(4) if exact else cutlass.min((k + 127) // 128 - 1 - unit * 2, 1) * 4
        for scales in at[2:]:
            words.append(ptx.f32_to_bits(ptx.stream_f32(scales, wanted)))
            words.append(ptx.f32_to_bits(ptx.stream_f32(scales + _wide(beyond), wanted)))
    return words


def _times_nvfp4(words: list[Any], x_piece: Callable[[int], Any]) -> list[Any]:
    low, high, scales = words[:16], words[16:32], words[32:]
    zero = Float32(0.0)
    sums = [[zero] * 4, [zero] * 4]
    pairs_of_scales = [
        decode.nvfp4_scales(scales[0]) + decode.nvfp4_scales(scales[1]),
        decode.nvfp4_scales(scales[2]) + decode.nvfp4_scales(scales[3]),
    ]
    for word in range(16):
        block = word // 2
        a_low = decode.nvfp4_word(low[word], pairs_of_scales[0][block])
        a_high = decode.nvfp4_word(high[word], pairs_of_scales[1][block])
        b = x_piece(word)
        for half in range(2):
            a = [a_low[2 * half], a_high[2 * half], a_low[2 * half + 1], a_high[2 * half + 1]]
            sums[half] = ptx.mma_f16(sums[half], a, b[2 * half : 2 * half + 2])
    return [(a + b) * decode.UNSCALE for a, b in zip(*sums, strict=True)]


def _times_fp8(words: list[Any], x_piece: Callable[[int], Any]) -> list[Any]:
    low, high, scales = words[:16], words[16:32], words[32:]
    total = [Float32(0.0)] * 4
    for tile in range(2):
        sums = [[Float32(0.0)] * 4, [Float32(0.0)] * 4]
        for word in range(8 * tile, 8 * tile + 8, 2):
            b = x_piece(word // 2)
            for half in range(2):
                a_low, a_high = ptx.e4m3_pairs(low[word + half]), ptx.e4m3_pairs(high[word + half])
                a = [a_low[0], a_high[0], a_low[1], a_high[1]]
                sums[half] = ptx.mma_f16(sums[half], a, b[2 * half : 2 * half + 2])
        factors = [ptx.bits_to_f32(scales[tile]), ptx.bits_to_f32(scales[2 + tile])]
        total = [total[i] + (sums[0][i] + sums[1][i]) * factors[i // 2] for i in range(4)]
    return total


def _times_bf16(words: list[Any], x_piece: Callable[[int], Any]) -> list[Any]:
    low, high = words[:16], words[16:32]
    sums = [[Float32(0.0)] * 4, [Float32(0.0)] * 4]
    for chunk in range(4):
        b = x_piece(chunk)
        for half in range(2):
            at = 4 * chunk + 2 * half
            a = [low[at], high[at], low[at + 1], high[at + 1]]
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
    tid, _, _ = cute.arch.thread_idx()
    per_row = units * (fmt.unit // 8)
    quad = 4 * fmt.pieces
    for piece in cutlass.range(tid, rows * per_row, THREADS, unroll=1):
        row = piece // per_row
        inside = piece - row * per_row
        chunk = inside // quad
        rest = inside - chunk * quad
        column = (chunk * 4 + (rest & 3)) * fmt.columns + (rest >> 2) * 8
        values = cute.make_rmem_tensor((8,), Float32)
        values.fill(0.0)
        if column < k:
            at = row.to(Int64) * stride.to(Int64) + column.to(Int64)
            if kind == 2:
                first = ptx.load_128(source + at * 4)
                second = ptx.load_128(source + at * 4 + 16)
                for i in cutlass.range_constexpr(4):
                    values[i] = ptx.bits_to_f32(first[i])
                    values[4 + i] = ptx.bits_to_f32(second[i])
            else:
                words = ptx.load_128(source + at * 2)
                if kind == 1:
                    for i in cutlass.range_constexpr(4):
                        low, high = ptx.unpack_f16(words[i])
                        values[2 * i] = low
                        values[2 * i + 1] = high
                else:
                    for i in cutlass.range_constexpr(4):
                        low, high = ptx.unpack_bf16(words[i])
                        values[2 * i] = low
                        values[2 * i + 1] = high
        pack = ptx.pack_bf16 if fmt.bfloat else ptx.pack_f16
        out = [pack(values[fmt.order[2 * i]], values[fmt.order[2 * i + 1]]) for i in range(4)]
        ptx.shared_store_128(shared + row * shared_stride + inside * 16, out)


@cute.jit
def walk(
    fmt: cutlass.Constexpr,
    exact: cutlass.Constexpr,
    locate: cutlass.Constexpr,
    begin: cutlass.Constexpr,
    factor: cutlass.Constexpr,
    store: cutlass.Constexpr,
    tiles: Int32,
    units: Int32,
    k: Int32,
    wk: Int32,
    shared: Int32,
    x_shared: Int32,
    x_stride: Int32,
    rows: Int32,
):
    """The loop of all kernels here: this block's tiles, this warp's units of each.

    locate(tile, unit): where this lane's part of a unit begins (see `_load_unit`); begin(): what must happen
    before x is used; factor(tile, unit): what a unit's sums are multiplied by; without it all units of a
    tile lie in the same two rows; store(tile, sums): the tile's sums, complete.
    """
    tid, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    warp = cute.arch.make_warp_uniform(tid // 32)
    lane = tid & 31
    t = lane & 3
    kw = warp % wk
    group = warp // wk
    at_once = WARPS // wk
    step = blocks * at_once
    first = block * at_once
    rounds = (tiles - first + step - 1) // step
    tile = first + group
    at = cute.make_rmem_tensor((4,), Int64)
    words = cute.make_rmem_tensor((36,), Int32)
    if tile < tiles:
        _put(at, locate(tile, kw))
    count = _put(
        words,
        _load_unit(fmt, exact, _all(at, 4), _column_unit(kw, units, k, fmt), t, k, (tile < tiles).to(Int32)),
    )
    begin()
    # A column of B without a row of its own repeats the last one: nobody stores what comes of it.
    x_lane = x_shared + cutlass.min(lane >> 2, rows - 1) * x_stride + t * 16
    for turn in cutlass.range(rounds, unroll=1):
        sums = cute.make_rmem_tensor((4,), Float32)
        sums.fill(0.0)
        for unit in cutlass.range(kw, units, wk, unroll=1):
            following = unit + wk
            following_tile = tile
            if following >= units:
                following = kw
                following_tile = tile + step
                if following_tile < tiles:
                    _put(at, locate(following_tile, following))
            elif cutlass.const_expr(factor is not None):
                _put(at, locate(following_tile, following))
            else:
                _put(at, _advance(fmt, at, wk))
            asked = _load_unit(
                fmt,
                exact,
                _all(at, 4),
                _column_unit(following, units, k, fmt),
                t,
                k,
                (following_tile < tiles).to(Int32),
            )
            here = x_lane + unit * (fmt.unit * 2)
            products = _TIMES[fmt.name](
                _all(words, count), lambda number, here=here: ptx.shared_load_128(here + number * 64)
            )
            if cutlass.const_expr(factor is not None):
                times = factor(tile, unit)
                products = [products[i] * times[i] for i in range(4)]
            _put(sums, [sums[i] + products[i] for i in range(4)])
            _put(words, asked)
        if wk > 1:
            # Two buffers in turn: the next round's barrier keeps a buffer from being refilled too early.
            buffer = shared + (turn & 1) * (THREADS * 16)
            ptx.shared_store_f32x4(buffer + tid * 16, _all(sums, 4))
            cute.arch.sync_threads()
            if kw == 0:
                for other in cutlass.range(1, wk, unroll=1):
                    more = ptx.shared_load_f32x4(buffer + (tid + other * 32) * 16)
                    _put(sums, [sums[i] + more[i] for i in range(4)])
        if (kw == 0) & (tile < tiles):
            store(tile, _all(sums, 4))
        tile = tile + step


def _put(registers: Any, values: Sequence[Any]) -> int:
    """Write values into a register tensor; returns how many."""
    for i, value in enumerate(values):
        registers[i] = value
    return len(values)


def _all(registers: Any, count: int) -> list[Any]:
    return [registers[i] for i in range(count)]


def _advance(fmt: Format, at: Any, units: Any) -> list[Any]:
    """`units` further along the same rows."""
    codes, scales = _wide(units * UNIT_BYTES), _wide(units * fmt.scale_bytes)
    return [at[0] + codes, at[1] + codes, at[2] + scales, at[3] + scales]


def _column_unit(unit: Any, units: Any, k: Any, fmt: Format) -> Any:
    """The unit's number within its row: with several picks one behind the other the rows repeat."""
    return unit % ((k + fmt.unit - 1) // fmt.unit)


def rows_at(
    fmt: Format, codes: Any, scales: Any, rows: Sequence[Any], place: tuple[Any, Any, Any, Any]
) -> list[Any]:
    """Where this lane's part of a unit begins in two rows.

    codes, scales: the two matrices' addresses; rows: a row of each; place: (unit within the row, lane in the
    quad, k, units of a row).
    """
    unit, t, k, units = place
    bits = {"nvfp4": 4, "fp8": 8, "bf16": 16}[fmt.name]
    codes_at = [
        base + _wide(row) * _wide(k * bits // 8) + _wide(unit * UNIT_BYTES + t * 16)
        for base, row in zip(codes, rows, strict=True)
    ]
    if fmt is NVFP4:
        scales_at = [
            base + _wide(row) * _wide(units * 32) + _wide(unit * 32 + t * 8)
            for base, row in zip(scales, rows, strict=True)
        ]
    elif fmt is FP8:
        scales_at = [
            base + _wide((row // 128) * ((k + 127) // 128) * 4 + unit * 8)
            for base, row in zip(scales, rows, strict=True)
        ]
    else:
        scales_at = list(scales)
    return codes_at + scales_at


def select(condition: Any, new: Any, old: Any) -> Any:
    return select_(condition, new, old)


def x_bytes(kind: Any) -> Any:
    """Bytes of an activation of this kind."""
    return _wide((kind // 2) * 2 + 2)


def further(address: Any, offset: Any) -> Any:
    """address + offset, or 0 where address is 0."""
    return select(address != 0, address + offset, Int64(0))
