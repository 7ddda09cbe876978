"""Stored weight codes to pairs of halves, in registers.

NVFP4 on Hopper, which has no instruction for it: an E2M1 code moved to bits 2..4 of a byte, its sign to bit
7, is the E4M3 number 2^-6 times its value (code 1 becomes a subnormal), and E4M3 to halves is hardware.
Four even codes share a word, then four odd ones, so pairs are (0, 2), (4, 6), (1, 3), (5, 7). On Blackwell
`cvt.rn.f16x2.e2m1x2` gives neighbours (0, 1), (2, 3) ... Activations are laid out to match: `PAIR_ORDER`.

E4M3 block scales: byte << 7 is a half of 2^-8 times the value. Codes times scales have at most 6 significant
bits and are multiples of 2^-24 in these units, so the products are exact halves, subnormal ones included; the
sums are 2^-14 (Hopper) or 2^-8 (Blackwell) of the true ones: `UNSCALE`.
"""

from typing import Any

from cutlass import Int32

from dsv4chat.kernels.cute import ptx
from dsv4chat.kernels.cute.target import BLACKWELL

# Columns of eight in the order in which their pairs leave `nvfp4_word`.
PAIR_ORDER = (0, 1, 2, 3, 4, 5, 6, 7) if BLACKWELL else (0, 2, 4, 6, 1, 3, 5, 7)
UNSCALE = 2.0**8 if BLACKWELL else 2.0**14


def nvfp4_scales(word: Any) -> list[Any]:
    """A word of four E4M3 scales -> a pair of equal halves for each."""
    pairs = []
    for byte in range(4):
        selector = (byte << 4 | 7) | (byte << 4 | 7) << 8  # bytes: zero, b, zero, b; 7 is a byte of the zero
        pairs.append(
            ptx.asm(
                f"{{ .reg .b32 d; prmt.b32 d, $1, 0, {selector:#x}; shr.b32 $0, d, 1; }}", [Int32], [word]
            )
        )
    return pairs


def nvfp4_word(word: Any, scale: Any) -> Any:
    """Eight codes -> four pairs of halves, each times the pair `scale`."""
    if BLACKWELL:
        pairs = ptx.asm(
            "{ .reg .b8 a, b, c, d; mov.b32 {a, b, c, d}, $4;\n"
            "cvt.rn.f16x2.e2m1x2 $0, a; cvt.rn.f16x2.e2m1x2 $1, b;\n"
            "cvt.rn.f16x2.e2m1x2 $2, c; cvt.rn.f16x2.e2m1x2 $3, d; }",
            [Int32] * 4,
            [word],
        )
    else:
        even, odd = ptx.asm(
            "{ .reg .b32 a, b; shl.b32 a, $2, 4; shl.b32 b, $2, 2; and.b32 b, b, 0x1C1C1C1C;\n"
            "lop3.b32 $0, a, 0x80808080, b, 0xEA;\n"  # (a & signs) | b
            "shr.b32 b, $2, 2; and.b32 b, b, 0x1C1C1C1C; lop3.b32 $1, $2, 0x80808080, b, 0xEA; }",
            [Int32, Int32],
            [word],
        )
        pairs = ptx.e4m3_pairs(even) + ptx.e4m3_pairs(odd)
    return [ptx.multiply_f16(pair, scale) for pair in pairs]
