"""Numbers to the codes of stored rows: E4M3, or E2M1, times a power of two that a group shares.

E8M0: byte b means 2^(b - 127). Ties go to the even code.
"""

from collections.abc import Iterator
from typing import Any

import cutlass
from cutlass import Float32, Int32

from dsv4chat.kernels.cute import arithmetic, ptx

# The largest values, 448 and 6: exponent and mantissa bits.
E4M3_LARGEST = (8, 0x600000)
E2M1_LARGEST = (2, 0x400000)
# Where a magnitude goes to the next E2M1 value, whether a tie does, and how far it is.
_EDGES = (
    (0.25, 0, 0.5),
    (0.75, 1, 0.5),
    (1.25, 0, 0.5),
    (1.75, 1, 0.5),
    (2.5, 0, 1.0),
    (3.5, 1, 1.0),
    (5.0, 0, 2.0),
)


def scale_byte(largest: Any, format_largest: tuple[int, int]) -> Any:
    """E8M0 byte of the smallest power of two s with largest <= s times the format's largest value."""
    exponent, mantissa = format_largest
    bits = arithmetic.f32_to_bits(largest)
    over = arithmetic.pick((bits & 0x7FFFFF) > mantissa, Int32(1), Int32(0))
    return cutlass.min(cutlass.max(((bits >> 23) & 255) - exponent + over, 1), 253)


def e4m3_code(value: Any) -> Any:
    """The E4M3 code nearest to a Float32, as Int32."""
    return ptx.asm(
        "{ .reg .b16 h; .reg .f32 z; mov.f32 z, 0f00000000; cvt.rn.satfinite.e4m3x2.f32 h, z, $1; "
        "cvt.u32.u16 $0, h; }",
        [Int32],
        [value],
    )


def e4m3_value(code: Any) -> Any:
    """The Float32 an E4M3 code stands for."""
    return ptx.asm(
        "{ .reg .b16 h, l, u; .reg .b32 p; cvt.u16.u32 h, $1; cvt.rn.f16x2.e4m3x2 p, h; mov.b32 {l, u}, p; "
        "cvt.f32.f16 $0, l; }",
        [Float32],
        [code],
    )


def e2m1_code(scaled: Any) -> Any:
    """The E2M1 code nearest to a Float32, as Int32."""
    code = Int32(0)
    for beyond, _ in _edges(scaled):
        code = code + arithmetic.pick(beyond, Int32(1), Int32(0))
    return code + arithmetic.pick(scaled < 0.0, Int32(8), Int32(0))


def e2m1_value(scaled: Any) -> Any:
    """The E2M1 value nearest to a Float32."""
    value = Float32(0.0)
    for beyond, step in _edges(scaled):
        value = value + arithmetic.pick(beyond, Float32(step), Float32(0.0))
    return arithmetic.pick(scaled < 0.0, 0.0 - value, value)


def _edges(scaled: Any) -> Iterator[tuple[Any, float]]:
    """Whether the magnitude is beyond each edge, and the step there."""
    size = arithmetic.magnitude(scaled)
    for edge, ties_up, step in _EDGES:
        yield (size >= edge if ties_up else size > edge), step
