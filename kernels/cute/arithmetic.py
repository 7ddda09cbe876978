"""Single instructions on numbers in registers: conversions, functions, tensor-core products."""

from collections.abc import Sequence
from typing import Any

from cutlass import Float32, Int32, Int64
from cutlass.cutlass_dsl import select_

from dsv4chat.kernels.cute.ptx import asm


def pack_f16(low: Any, high: Any) -> Any:
    """Two Float32, cut to half's range (NaN stays), as a pair of halves."""
    return asm("cvt.rn.satfinite.f16x2.f32 $0, $2, $1;", [Int32], [low, high])


def pack_bf16(low: Any, high: Any) -> Any:
    return asm("cvt.rn.bf16x2.f32 $0, $2, $1;", [Int32], [low, high])


def unpack_bf16(word: Any) -> Any:
    """A pair of bfloat16 as two Float32, low first."""
    return asm(
        "{ .reg .b32 l; shl.b32 l, $2, 16; mov.b32 $0, l; and.b32 l, $2, 0xFFFF0000; mov.b32 $1, l; }",
        [Float32, Float32],
        [word],
    )


def round_bf16(value: Any) -> Any:
    """The bfloat16 nearest to a Float32, as Float32."""
    return asm(
        "{ .reg .b16 h, z; mov.b16 z, 0; cvt.rn.bf16.f32 h, $1; mov.b32 $0, {z, h}; }", [Float32], [value]
    )


def unpack_f16(word: Any) -> Any:
    return asm(
        "{ .reg .b16 l, h; mov.b32 {l, h}, $2; cvt.f32.f16 $0, l; cvt.f32.f16 $1, h; }",
        [Float32, Float32],
        [word],
    )


def bits_to_f32(word: Any) -> Any:
    return asm("mov.b32 $0, $1;", [Float32], [word])


def f32_to_bits(value: Any) -> Any:
    return asm("mov.b32 $0, $1;", [Int32], [value])


def multiply_f16(a: Any, b: Any) -> Any:
    return asm("mul.rn.f16x2 $0, $1, $2;", [Int32], [a, b])


def e4m3_pairs(word: Any) -> Any:
    """Four E4M3 bytes -> two pairs of halves, exact, in order."""
    return asm(
        "{ .reg .b16 l, h; mov.b32 {l, h}, $2; cvt.rn.f16x2.e4m3x2 $0, l; cvt.rn.f16x2.e4m3x2 $1, h; }",
        [Int32, Int32],
        [word],
    )


def mma_f16(c: Sequence[Any], a: Sequence[Any], b: Sequence[Any]) -> Any:
    """C (16 x 8 float32) + A (16 x 16 halves) B (16 x 8 halves), one warp.

    Lane 4g + t holds of A rows g, g + 8 (words 0, 1) at its two k, then again at two more k (words 2, 3);
    of B column g at the same k (words 0, 1); of C row g (0, 1) and g + 8 (2, 3), columns 2t, 2t + 1.
    """
    return _mma("f16", c, a, b)


def mma_bf16(c: Sequence[Any], a: Sequence[Any], b: Sequence[Any]) -> Any:
    """As `mma_f16`, for bfloat16."""
    return _mma("bf16", c, a, b)


def _mma(kind: str, c: Sequence[Any], a: Sequence[Any], b: Sequence[Any]) -> Any:
    return asm(
        f"mma.sync.aligned.m16n8k16.row.col.f32.{kind}.{kind}.f32 {{$0, $1, $2, $3}}, {{$4, $5, $6, $7}}, "
        "{$8, $9}, {$10, $11, $12, $13};",
        [Float32] * 4,
        [*a, *b, *c],
    )


def magnitude(value: Any) -> Any:
    return asm("abs.f32 $0, $1;", [Float32], [value])


def max_nan(a: Any, b: Any) -> Any:
    """The larger; NaN if one is."""
    return asm("max.NaN.f32 $0, $1, $2;", [Float32], [a, b])


def words_of(whole: Any) -> Any:
    """The words of an Int64, low first."""
    return asm("mov.b64 {$0, $1}, $2;", [Int32, Int32], [whole])


def whole(low: Any, high: Any) -> Any:
    """The Int64 of two words."""
    return asm("mov.b64 $0, {$1, $2};", [Int64], [low, high])


# Numbers below 2^-126 count as 0 from here on: to do without costs these functions four instructions more.


def inverse_root(value: Any) -> Any:
    return asm("rsqrt.approx.ftz.f32 $0, $1;", [Float32], [value])


def reciprocal(value: Any) -> Any:
    return asm("rcp.approx.ftz.f32 $0, $1;", [Float32], [value])


def exponential(value: Any) -> Any:
    """e^value, as 2^(value log2 e)."""
    return asm("{ .reg .f32 t; mul.f32 t, $1, 0f3FB8AA3B; ex2.approx.ftz.f32 $0, t; }", [Float32], [value])


def sigmoid(value: Any) -> Any:
    return reciprocal(exponential(-value) + 1.0)


def pick(condition: Any, yes: Any, no: Any) -> Any:
    """`yes` where the condition holds, else `no`; both are worked out."""
    return type(yes)(select_(condition, yes, no))


def logarithm(value: Any) -> Any:
    return asm("{ .reg .f32 t; lg2.approx.ftz.f32 t, $1; mul.f32 $0, t, 0f3F317218; }", [Float32], [value])


def root(value: Any) -> Any:
    return asm("sqrt.rn.f32 $0, $1;", [Float32], [value])


def exp2(value: Any) -> Any:
    return asm("ex2.approx.ftz.f32 $0, $1;", [Float32], [value])


def power_of_two_f16(byte: Any) -> Any:
    """An E8M0 byte as a pair of equal halves; exact from 2^-24 to 2^15."""
    return asm(
        "{ .reg .b32 e; .reg .f32 f; shl.b32 e, $1, 23; mov.b32 f, e; cvt.rn.f16x2.f32 $0, f, f; }",
        [Int32],
        [byte],
    )


def shifted(word: Any, by: Any) -> Any:
    """To the right, zeros from the left."""
    return asm("shr.u32 $0, $1, $2;", [Int32], [word, by])


def count_bits(word: Any) -> Any:
    return asm("popc.b32 $0, $1;", [Int32], [word])


def width(word: Any) -> Any:
    """How many bits a word without sign has: 0 for 0."""
    return asm("{ .reg .b32 z; clz.b32 z, $1; sub.s32 $0, 32, z; }", [Int32], [word])


def rotated(pair: Any, cosine: Any, sine: Any) -> Any:
    """(a + bi) (cosine + sine i)."""
    a, b = pair
    return a * cosine - b * sine, a * sine + b * cosine


def swiglu(gate: Any, up: Any, limit: Any) -> Any:
    """silu(min(gate, limit)) * clip(up, -limit, limit)."""
    return asm(
        "{ .reg .f32 g, u, e; min.f32 g, $1, $3; min.f32 u, $2, $3; neg.f32 e, $3; max.f32 u, u, e;\n"
        "mul.f32 e, g, 0fBFB8AA3B; ex2.approx.f32 e, e; add.f32 e, e, 0f3F800000;\n"
        "div.full.f32 e, g, e; mul.f32 $0, e, u; }",
        [Float32],
        [gate, up, limit],
    )
