"""Single instructions for the kernels: loads, stores, conversions, tensor-core products.

Addresses are plain 64-bit (global) or 32-bit (shared) integers. Everything here is traced while a kernel is
compiled; nothing runs on the host.
"""

from collections.abc import Sequence
from typing import Any

from cutlass import Float32, Int32, Int64
from cutlass._mlir.dialects import llvm
from cutlass.cutlass_dsl import select_

_CONSTRAINT = {Int32: "r", Int64: "l", Float32: "f"}


def asm(code: str, outs: Sequence[Any], ins: Sequence[Any], *, volatile: bool = False) -> Any:
    """Inline PTX. $0.. are the outputs, then the inputs; returns one value or a list.

    volatile: keeps its place among other volatile operations, barriers and waits; needed for whatever reads
    memory that changes during the kernel.
    """
    constraints = [f"={_CONSTRAINT[kind]}" for kind in outs] + [_CONSTRAINT[type(value)] for value in ins]
    if volatile:
        constraints.append("~{memory}")
    if not outs:
        result_type = None
    elif len(outs) == 1:
        result_type = outs[0].mlir_type
    else:
        result_type = llvm.StructType.get_literal([kind.mlir_type for kind in outs])
    result = llvm.inline_asm(
        result_type,
        [value.ir_value() for value in ins],
        code,
        ",".join(constraints),
        has_side_effects=volatile,
        is_align_stack=False,
        asm_dialect=llvm.AsmDialect.AD_ATT,
    )
    if not outs:
        return None
    if len(outs) == 1:
        return outs[0](result)
    return [kind(llvm.extractvalue(kind.mlir_type, result, [i])) for i, kind in enumerate(outs)]


# Global memory.


def stream_128(address: Any, wanted: Any) -> Any:
    """Four words of weights, read once: not kept in L1. Undefined unless `wanted` (Int32) is not 0."""
    return asm(
        "{ .reg .pred p; setp.ne.b32 p, $5, 0;\n"
        "@p ld.global.nc.L1::no_allocate.L2::128B.v4.b32 {$0, $1, $2, $3}, [$4]; }",
        [Int32] * 4,
        [address, wanted],
        volatile=True,
    )


def stream_64(address: Any, wanted: Any) -> Any:
    """Two words of scales; undefined unless `wanted`."""
    return asm(
        "{ .reg .pred p; setp.ne.b32 p, $3, 0;\n@p ld.global.nc.v2.b32 {$0, $1}, [$2]; }",
        [Int32] * 2,
        [address, wanted],
        volatile=True,
    )


def stream_f32(address: Any, wanted: Any) -> Any:
    """One float32 of scales; undefined unless `wanted`."""
    return asm(
        "{ .reg .pred p; setp.ne.b32 p, $2, 0;\n@p ld.global.nc.f32 $0, [$1]; }",
        [Float32],
        [address, wanted],
        volatile=True,
    )


def load_128(address: Any) -> Any:
    """Four words of what another kernel wrote."""
    return asm("ld.global.v4.b32 {$0, $1, $2, $3}, [$4];", [Int32] * 4, [address], volatile=True)


def load_64(address: Any) -> Any:
    return asm("ld.global.v2.b32 {$0, $1}, [$2];", [Int32] * 2, [address], volatile=True)


def load_32(address: Any) -> Any:
    return asm("ld.global.b32 $0, [$1];", [Int32], [address], volatile=True)


def load_shared_by_all(address: Any) -> Any:
    """A word that another block wrote a moment ago: past L1."""
    return asm("ld.relaxed.gpu.global.b32 $0, [$1];", [Int32], [address], volatile=True)


def load_f32(address: Any) -> Any:
    return asm("ld.global.f32 $0, [$1];", [Float32], [address], volatile=True)


def load_f32_if(address: Any, wanted: Any) -> Any:
    """One float32, or 0 unless `wanted`."""
    return asm(
        "{ .reg .pred p; setp.ne.b32 p, $2, 0; mov.f32 $0, 0f00000000;\n@p ld.global.f32 $0, [$1]; }",
        [Float32],
        [address, wanted],
        volatile=True,
    )


def load_u8(address: Any) -> Any:
    return asm("{ .reg .b16 h; ld.global.u8 h, [$1]; cvt.u32.u16 $0, h; }", [Int32], [address], volatile=True)


def load_bf16(address: Any) -> Any:
    """One bfloat16 as Float32."""
    return asm(
        "{ .reg .b16 h; .reg .b16 z; mov.b16 z, 0; ld.global.b16 h, [$1]; mov.b32 $0, {z, h}; }",
        [Float32],
        [address],
        volatile=True,
    )


def load_bf16_if(address: Any, wanted: Any) -> Any:
    """One bfloat16 as Float32, or 0 unless `wanted`."""
    return asm(
        "{ .reg .pred p; .reg .b16 h, z; setp.ne.b32 p, $2, 0; mov.b16 z, 0; mov.b16 h, 0;\n"
        "@p ld.global.b16 h, [$1]; mov.b32 $0, {z, h}; }",
        [Float32],
        [address, wanted],
        volatile=True,
    )


def store_f32(address: Any, value: Any) -> None:
    asm("st.global.f32 [$0], $1;", [], [address, value], volatile=True)


def store_32(address: Any, value: Any) -> None:
    asm("st.global.b32 [$0], $1;", [], [address, value], volatile=True)


def store_64(address: Any, words: Sequence[Any]) -> None:
    asm("st.global.v2.b32 [$0], {$1, $2};", [], [address, *words], volatile=True)


def store_128(address: Any, words: Sequence[Any]) -> None:
    asm("st.global.v4.b32 [$0], {$1, $2, $3, $4};", [], [address, *words], volatile=True)


def store_u8(address: Any, value: Any) -> None:
    asm("{ .reg .b16 h; cvt.u16.u32 h, $1; st.global.u8 [$0], h; }", [], [address, value], volatile=True)


def store_f16(address: Any, value: Any) -> None:
    """Float32 rounded to half."""
    asm("{ .reg .b16 h; cvt.rn.f16.f32 h, $1; st.global.b16 [$0], h; }", [], [address, value], volatile=True)


def store_clipped_f16(address: Any, value: Any) -> None:
    """Float32 cut to half's range and rounded, as `pack_f16` does it."""
    asm(
        "{ .reg .b16 h; .reg .f32 a; min.f32 a, $1, 0f477FE000; max.f32 a, a, 0fC77FE000;\n"
        "cvt.rn.f16.f32 h, a; st.global.b16 [$0], h; }",
        [],
        [address, value],
        volatile=True,
    )


def store_bf16(address: Any, value: Any) -> None:
    asm("{ .reg .b16 h; cvt.rn.bf16.f32 h, $1; st.global.b16 [$0], h; }", [], [address, value], volatile=True)


def prefetch(address: Any) -> None:
    """A line into L2; nothing if it is not needed after all."""
    asm("prefetch.global.L2 [$0];", [], [address], volatile=True)


def copy_async_16(to: Any, address: Any) -> None:
    """16 bytes of weights on their way into shared memory, past L1."""
    asm("cp.async.cg.shared.global.L2::128B [$0], [$1], 16;", [], [to, address], volatile=True)


def copy_async_if(to: Any, address: Any, wanted: Any, size: int) -> None:
    """`size` bytes (16 or 4), unless `wanted` is 0."""
    way = "cg" if size == 16 else "ca"
    asm(
        f"{{ .reg .pred p; setp.ne.b32 p, $2, 0;\n@p cp.async.{way}.shared.global [$0], [$1], {size}; }}",
        [],
        [to, address, wanted],
        volatile=True,
    )


# Shared memory.


def shared_load_32(address: Any) -> Any:
    return asm("ld.shared.b32 $0, [$1];", [Int32], [address], volatile=True)


def shared_load_64(address: Any) -> Any:
    return asm("ld.shared.v2.b32 {$0, $1}, [$2];", [Int32] * 2, [address], volatile=True)


def shared_load_128(address: Any) -> Any:
    return asm("ld.shared.v4.b32 {$0, $1, $2, $3}, [$4];", [Int32] * 4, [address], volatile=True)


def shared_load_128_if(address: Any, wanted: Any) -> Any:
    """Four words, or zeros unless `wanted`."""
    return asm(
        "{ .reg .pred p; setp.ne.b32 p, $5, 0;\n"
        "mov.b32 $0, 0; mov.b32 $1, 0; mov.b32 $2, 0; mov.b32 $3, 0;\n"
        "@p ld.shared.v4.b32 {$0, $1, $2, $3}, [$4]; }",
        [Int32] * 4,
        [address, wanted],
        volatile=True,
    )


def shared_store_128(address: Any, words: Sequence[Any]) -> None:
    asm("st.shared.v4.b32 [$0], {$1, $2, $3, $4};", [], [address, *words], volatile=True)


def shared_load_f32(address: Any) -> Any:
    return asm("ld.shared.f32 $0, [$1];", [Float32], [address], volatile=True)


def shared_store_f32(address: Any, value: Any) -> None:
    asm("st.shared.f32 [$0], $1;", [], [address, value], volatile=True)


def shared_store_32(address: Any, word: Any) -> None:
    asm("st.shared.b32 [$0], $1;", [], [address, word], volatile=True)


def shared_store_64(address: Any, words: Sequence[Any]) -> None:
    asm("st.shared.v2.b32 [$0], {$1, $2};", [], [address, *words], volatile=True)


def load_matrix_transposed(address: Any) -> Any:
    """Four 8 x 8 matrices of halves, each transposed; lane l points at row l % 8 of matrix l / 8."""
    return asm(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];",
        [Int32] * 4,
        [address],
        volatile=True,
    )


def shared_load_f32x4(address: Any) -> Any:
    return asm("ld.shared.v4.f32 {$0, $1, $2, $3}, [$4];", [Float32] * 4, [address], volatile=True)


def shared_store_f32x4(address: Any, values: Sequence[Any]) -> None:
    asm("st.shared.v4.f32 [$0], {$1, $2, $3, $4};", [], [address, *values], volatile=True)


# Numbers.


def pack_f16(low: Any, high: Any) -> Any:
    """Two Float32, cut to half's range, as a pair of halves."""
    return asm(
        "{ .reg .f32 a, b; min.f32 a, $1, 0f477FE000; max.f32 a, a, 0fC77FE000;\n"
        "min.f32 b, $2, 0f477FE000; max.f32 b, b, 0fC77FE000; cvt.rn.f16x2.f32 $0, b, a; }",
        [Int32],
        [low, high],
    )


def pack_bf16(low: Any, high: Any) -> Any:
    return asm("cvt.rn.bf16x2.f32 $0, $2, $1;", [Int32], [low, high])


def unpack_bf16(word: Any) -> Any:
    """A pair of bfloat16 as two Float32, low first."""
    return asm(
        "{ .reg .b32 l; shl.b32 l, $2, 16; mov.b32 $0, l; and.b32 l, $2, 0xFFFF0000; mov.b32 $1, l; }",
        [Float32, Float32],
        [word],
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


def permute(a: Any, b: Any, selector: int) -> Any:
    return asm(f"prmt.b32 $0, $1, $2, {selector:#x};", [Int32], [a, b])


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


# Numbers below 2^-126 count as 0 from here on: to do without costs these functions four instructions more.


def inverse_root(value: Any) -> Any:
    return asm("rsqrt.approx.ftz.f32 $0, $1;", [Float32], [value])


def reciprocal(value: Any) -> Any:
    return asm("rcp.approx.ftz.f32 $0, $1;", [Float32], [value])


def exponential(value: Any) -> Any:
    """e^value, as 2^(value log2 e)."""
    return asm("{ .reg .f32 t; mul.f32 t, $1, 0f3FB8AA3B; ex2.approx.ftz.f32 $0, t; }", [Float32], [value])


def sigmoid(value: Any) -> Any:
    return asm(
        "{ .reg .f32 t; mul.f32 t, $1, 0fBFB8AA3B; ex2.approx.ftz.f32 t, t; add.f32 t, t, 0f3F800000; "
        "rcp.rn.f32 $0, t; }",
        [Float32],
        [value],
    )


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


def shared_load_address(address: Any) -> Any:
    """A 64-bit address kept in shared memory."""
    return asm("ld.shared.b64 $0, [$1];", [Int64], [address], volatile=True)


def shared_store_address(address: Any, value: Any) -> None:
    asm("st.shared.b64 [$0], $1;", [], [address, value], volatile=True)


def swiglu(gate: Any, up: Any, limit: Any) -> Any:
    """silu(min(gate, limit)) * clip(up, -limit, limit)."""
    return asm(
        "{ .reg .f32 g, u, e; min.f32 g, $1, $3; min.f32 u, $2, $3; neg.f32 e, $3; max.f32 u, u, e;\n"
        "mul.f32 e, g, 0fBFB8AA3B; ex2.approx.f32 e, e; add.f32 e, e, 0f3F800000;\n"
        "div.full.f32 e, g, e; mul.f32 $0, e, u; }",
        [Float32],
        [gate, up, limit],
    )
