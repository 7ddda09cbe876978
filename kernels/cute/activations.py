"""Activations in shared memory, in the order in which the lanes of a product meet them."""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Int32, Int64

from dsv4chat.kernels.cute import arithmetic, ptx
from dsv4chat.kernels.cute.units import Format, wide

THREADS = 256
AT_ONCE = 4
MOST_EARLY = 8 * AT_ONCE * THREADS  # columns


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
    at_once: cutlass.Constexpr = AT_ONCE,
):
    """Copy rows of activations into shared memory, in the order in which lanes meet them, zeros from k on.

    kind: 0 bfloat16, 1 half, 2 float32; stride: elements between rows of `source`; at_once: pieces a thread
    asks for before it uses the first.
    """
    for row in cutlass.range(rows, unroll=1):
        here = source + row.to(Int64) * stride.to(Int64) * x_bytes(kind)
        there = shared + row * shared_stride
        if kind == 0:
            _stage_row(fmt, 0, at_once, here, k, there, units)
        elif kind == 1:
            _stage_row(fmt, 1, at_once, here, k, there, units)
        else:
            _stage_row(fmt, 2, at_once, here, k, there, units)


@cute.jit
def _stage_row(
    fmt: cutlass.Constexpr,
    kind: cutlass.Constexpr,
    at_once: cutlass.Constexpr,
    source: Int64,
    k: Int32,
    shared: Int32,
    units: Int32,
):
    tid, _, _ = cute.arch.thread_idx()
    pieces = units * (fmt.unit // 8)
    for piece in cutlass.range(tid, pieces, at_once * THREADS, unroll=1):
        places = [piece + i * THREADS for i in range(at_once)]
        columns = [_column(fmt, place) for place in places]
        read = [_eight(kind, source, cutlass.min(column, k - 8)) for column in columns]
        for i in cutlass.range_constexpr(at_once):
            if places[i] < pieces:
                words = _pairs(fmt, kind, read[i])
                inside = columns[i] < k
                ptx.shared_store_128(
                    shared + places[i] * 16, [arithmetic.pick(inside, word, Int32(0)) for word in words]
                )


@cute.jit
def read_early(fmt: cutlass.Constexpr, words: cute.Tensor, source: Int64, units: Int32):
    """A row of bfloat16 or half, whole units of at most MOST_EARLY columns, on its way into registers: 4 *
    AT_ONCE words. It may be younger than this kernel's L1.
    """
    tid, _, _ = cute.arch.thread_idx()
    last = units * (fmt.unit // 8) - 1
    for i in cutlass.range_constexpr(AT_ONCE):
        column = _column(fmt, cutlass.min(tid + i * THREADS, last))
        for j, word in enumerate(ptx.load_128_past_l1(source + wide(column * 2))):
            words[4 * i + j] = word


@cute.jit
def stage_early(fmt: cutlass.Constexpr, words: cute.Tensor, kind: Int32, shared: Int32, units: Int32):
    """What `read_early` asked for, where `stage` would put it."""
    tid, _, _ = cute.arch.thread_idx()
    for i in cutlass.range_constexpr(AT_ONCE):
        piece = tid + i * THREADS
        if piece < units * (fmt.unit // 8):
            four = [words[4 * i + j] for j in range(4)]
            own, other = _pairs(fmt, 0, four), _pairs(fmt, 1, four)
            ptx.shared_store_128(
                shared + piece * 16,
                [arithmetic.pick(kind == 0, a, b) for a, b in zip(own, other, strict=True)],
            )


def _column(fmt: Format, piece: Any) -> Any:
    """The first of the eight columns that lie in a piece of x."""
    quad = 4 * fmt.pieces
    chunk, rest = piece >> (quad.bit_length() - 1), piece & (quad - 1)
    return (chunk * 4 + (rest & 3)) * fmt.columns + (rest >> 2) * 8


def _eight(kind: int, source: Any, column: Any) -> list[Any]:
    """The words of eight activations from `column` on."""
    if kind < 2:
        return list(ptx.load_128(source + wide(column * 2)))
    at = source + wide(column * 4)
    return list(ptx.load_128(at)) + list(ptx.load_128(at + 16))


def _pairs(fmt: Format, kind: int, words: list[Any]) -> list[Any]:
    """Eight activations as four pairs of the type the tensor cores take."""
    if kind == (0 if fmt.bfloat else 1):
        return words
    if kind == 2:
        values = [arithmetic.bits_to_f32(word) for word in words]
    else:
        unpack = arithmetic.unpack_bf16 if kind == 0 else arithmetic.unpack_f16
        values = [value for word in words for value in unpack(word)]
    pack = arithmetic.pack_bf16 if fmt.bfloat else arithmetic.pack_f16
    return [pack(values[2 * i], values[2 * i + 1]) for i in range(4)]


def x_bytes(kind: Any) -> Any:
    """Bytes of an activation of this kind."""
    return wide((kind >> 1) * 2 + 2)
