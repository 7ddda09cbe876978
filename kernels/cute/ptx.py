"""Single instructions for the kernels: inline PTX, loads and stores; `arithmetic` has those on numbers.

Addresses are plain 64-bit (global) or 32-bit (shared) integers. Everything here is traced while a kernel is
compiled; nothing runs on the host.
"""

from collections.abc import Sequence
from typing import Any

from cutlass import Float32, Int32, Int64
from cutlass._mlir.dialects import llvm

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


def kept(value: Any) -> Any:
    """An Int32, or Int64, that is kept in a register rather than worked out again where it is needed."""
    move = "mov.b64" if type(value) is Int64 else "mov.b32"
    return asm(f"{move} $0, $1;", [type(value)], [value], volatile=True)


# Global memory.


def load_128(address: Any) -> Any:
    """Four words of what another kernel wrote."""
    return asm("ld.global.v4.b32 {$0, $1, $2, $3}, [$4];", [Int32] * 4, [address], volatile=True)


def load_128_past_l1(address: Any) -> Any:
    """Four words that may be younger than this kernel's L1: read before it waits."""
    return asm("ld.global.cg.v4.b32 {$0, $1, $2, $3}, [$4];", [Int32] * 4, [address], volatile=True)


def load_64_past_l1(address: Any) -> Any:
    """See `load_128_past_l1`."""
    return asm("ld.global.cg.v2.b32 {$0, $1}, [$2];", [Int32] * 2, [address], volatile=True)


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


def load_bf16_if(address: Any, wanted: Any) -> Any:
    """One bfloat16 as Float32, or 0 unless `wanted`; past L1, as `load_128_past_l1`."""
    return asm(
        "{ .reg .pred p; .reg .b16 h, z; setp.ne.b32 p, $2, 0; mov.b16 z, 0; mov.b16 h, 0;\n"
        "@p ld.global.cg.b16 h, [$1]; mov.b32 $0, {z, h}; }",
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
        "{ .reg .b16 h; cvt.rn.satfinite.f16.f32 h, $1; st.global.b16 [$0], h; }",
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
