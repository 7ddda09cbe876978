"""Units of stored weights: how they come into shared memory, and what their products with x are.

    unit = 128 bytes of each of a tile's 16 rows = 2 chunks of (4 lanes x 16 bytes), with their scales

The order of the columns within a product is free as long as weights and activations agree, so a lane takes 16
bytes of a row as they are stored. In a stage the two halves of odd rows change places, so that reading a
chunk of two rows meets all banks. Layouts, see `arrange`: NVFP4 and FP8 of whole units in groups of rows, so
that a unit is two runs of 1 kB; anything else in rows. NVFP4 block scales in the order in which lanes need
them; FP8 tile scales as float32.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cutlass
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, decode, ptx

STAGE_BYTES = 16 * 128 + 16 * 16  # codes, scales


def wide(value: Any) -> Any:
    return value.to(Int64)


@dataclass(frozen=True)
class Format:
    """How a format's unit is laid out.

    columns: what a lane reads as one 16-byte chunk; scale_bytes: of a unit and row (of a unit and tile for
    FP8); stages: of a warp; blocks: of a multiprocessor at a time. Three stages are enough for NVFP4, whose
    decoding takes the most instructions: what more of them bring before x would only wait to be worked on.
    """

    name: str
    columns: int
    scale_bytes: int
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


NVFP4 = Format("nvfp4", 32, 16, stages=3, blocks=2)
FP8 = Format("fp8", 16, 4, stages=5, blocks=2)
BF16 = Format("bf16", 8, 0, stages=5, blocks=2, bfloat=True)
FORMATS = (NVFP4, FP8, BF16)


@dataclass(frozen=True)
class Lane:
    """What a lane knows about itself: its number, row g and place t of its quad, its warp's stages."""

    lane: Any
    g: Any
    t: Any
    ring: Any


def in_groups(fmt: Format, exact: bool) -> bool:
    """Whether a matrix lies in groups of rows. exact: its columns are whole units, its rows whole groups."""
    return exact and not fmt.bfloat


def steps(fmt: Format, exact: bool) -> list[int]:
    """How far what `rows_at` gives moves with a unit, bytes."""
    if in_groups(fmt, exact):
        return [1024, 1024, fmt.scale_bytes * (8 if fmt is NVFP4 else 1)]
    return [128, 128, 128, 128, fmt.scale_bytes]


def copy_unit(fmt: Format, exact: bool, at: Sequence[Any], lane: Lane, slot: Any, unit: Any, k: Any) -> None:
    """Ask for a unit into stage `slot`. at: this lane's part, as `rows_at` gives it.

    In rows, what lies beyond the last column is read again from within: its x is zero.
    """
    stage = lane.ring + slot * STAGE_BYTES
    row, chunk = lane.lane >> 3, lane.lane & 7
    to = stage + row * 128 + (chunk ^ ((row & 1) << 2)) * 16
    if in_groups(fmt, exact):
        parts = [at[i // 2] + i % 2 * 512 for i in range(4)]
    elif exact:
        parts = list(at[:4])
    else:
        back = cutlass.min((k >> (fmt.columns.bit_length() - 1)) - 1 - (unit * 8 + chunk), 0) * 16
        parts = [address + wide(back) for address in at[:4]]
    for i, part in enumerate(parts):
        ptx.copy_async_16(to + i * 512, part)
    if fmt is NVFP4:
        ptx.copy_async_if(stage + 2048 + lane.lane * 16, at[-1], (lane.lane < 16).to(Int32), 16)
    elif fmt is FP8:
        ptx.copy_async_if(stage + 2048 + lane.lane * 4, at[-1], (lane.lane < 2).to(Int32), 4)


def chunks(lane: Lane, stage: Any, chunk: int) -> tuple[Any, Any]:
    """The four words of this lane's chunk in rows g and g + 8."""
    here = stage + lane.g * 128 + ((chunk * 4 + lane.t) ^ ((lane.g & 1) << 2)) * 16
    return ptx.shared_load_128(here), ptx.shared_load_128(here + 1024)


def _times_nvfp4(lane: Lane, stage: Any, x: Callable[[int], Any]) -> list[Any]:
    sums = [[Float32(0.0)] * 4, [Float32(0.0)] * 4]
    here = stage + 2048 + lane.g * 16 + lane.t * 4
    scales = [decode.nvfp4_scales(ptx.shared_load_32(here + high * 128)) for high in range(2)]
    for chunk in range(2):
        low, high = chunks(lane, stage, chunk)
        for word in range(4):
            block = 2 * chunk + word // 2
            a_low = decode.nvfp4_word(low[word], scales[0][block])
            a_high = decode.nvfp4_word(high[word], scales[1][block])
            b = x(4 * chunk + word)
            for half in range(2):
                a = [a_low[2 * half], a_high[2 * half], a_low[2 * half + 1], a_high[2 * half + 1]]
                sums[half] = arithmetic.mma_f16(sums[half], a, b[2 * half : 2 * half + 2])
    return [(a + b) * decode.UNSCALE for a, b in zip(*sums, strict=True)]


def _times_fp8(lane: Lane, stage: Any, x: Callable[[int], Any]) -> list[Any]:
    sums = [[Float32(0.0)] * 4, [Float32(0.0)] * 4]
    factors = [ptx.shared_load_f32(stage + 2048 + 4 * high) for high in range(2)]
    for chunk in range(2):
        low, high = chunks(lane, stage, chunk)
        for word in range(0, 4, 2):
            b = x(2 * chunk + word // 2)
            for half in range(2):
                a_low, a_high = (
                    arithmetic.e4m3_pairs(low[word + half]),
                    arithmetic.e4m3_pairs(high[word + half]),
                )
                a = [a_low[0], a_high[0], a_low[1], a_high[1]]
                sums[half] = arithmetic.mma_f16(sums[half], a, b[2 * half : 2 * half + 2])
    return [(sums[0][i] + sums[1][i]) * factors[i // 2] for i in range(4)]


def _times_bf16(lane: Lane, stage: Any, x: Callable[[int], Any]) -> list[Any]:
    sums = [[Float32(0.0)] * 4, [Float32(0.0)] * 4]
    for chunk in range(2):
        low, high = chunks(lane, stage, chunk)
        b = x(chunk)
        for half in range(2):
            a = [low[2 * half], high[2 * half], low[2 * half + 1], high[2 * half + 1]]
            sums[half] = arithmetic.mma_bf16(sums[half], a, b[2 * half : 2 * half + 2])
    return [a + b for a, b in zip(*sums, strict=True)]


TIMES = {"nvfp4": _times_nvfp4, "fp8": _times_fp8, "bf16": _times_bf16}


def pieces(first: Any) -> Callable[[int], Any]:
    """A lane's pieces of x at a unit, by number."""
    return lambda piece: ptx.shared_load_128(first + piece * 64)


def rows_at(
    fmt: Format, exact: bool, lane: Any, row: Callable[[Any], Any], place: tuple[Any, Any, Any]
) -> list[Any]:
    """Where this lane's part of a unit begins: of its codes in two groups, or of four rows a chunk each; then
    the scales it copies.

    row(r): (address of the matrix's codes, of its scales, row in the matrix) for row r of the tile; place:
    (unit within the row, k, units of a row).
    """
    unit, k, row_units = place
    at = []
    if in_groups(fmt, exact):
        for half in range(2):
            codes, _, number = row(half * 8)
            at.append(codes + wide(number >> 3) * wide(row_units * 1024) + wide(unit * 1024 + lane * 16))
    else:
        for i in range(4):
            codes, _, number = row(i * 4 + (lane >> 3))
            inside = wide(unit * 128 + (lane & 7) * 16)
            at.append(codes + wide(number) * wide((k * fmt.row_bits) >> 3) + inside)
    if fmt is NVFP4 and exact:
        _, scales, number = row(lane & 8)
        at.append(scales + wide(number >> 3) * wide(row_units * 128) + wide(unit * 128 + (lane & 7) * 16))
    elif fmt is NVFP4:
        _, scales, number = row(lane & 15)
        at.append(scales + wide(number) * wide(row_units * 16) + wide(unit * 16))
    elif fmt is FP8:
        # Lanes 0 and 1 copy the factor of the tile's upper and lower eight rows.
        _, scales, number = row((lane & 1) * 8)
        at.append(scales + wide((number >> 7) * ((k + 127) >> 7) * 4 + unit * 4))
    else:
        at.append(at[0])
    return at


def units_of(fmt: Format, k: Any) -> Any:
    """Units of a row of k columns, the last perhaps short."""
    return (k + (fmt.unit - 1)) >> (fmt.unit.bit_length() - 1)
