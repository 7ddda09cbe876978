"""Stored weight codes to pairs of halves, in registers.

Hopper has no instruction for NVFP4. There a half with the sign of an E2M1 code at bit 15 and its magnitude at
bits 9 to 11 is 2^-14 times its value (code 1 becomes a subnormal), and codes come in the order of
`spread_order`, in which a shift, a mask and for some an exclusive or bring two of them there. On Blackwell
`cvt.rn.f16x2.e2m1x2` takes them as they are stored. Either way pairs are neighbours: (0, 1), (2, 3) ...

E4M3 block scales: byte << 7 is a half of 2^-8 times the value, on Hopper made 2^7 times the value. Codes
times scales have at most 6 significant bits and are multiples of 2^-24 in these units, so the products are
exact halves; the sums are 2^-7 (Hopper) or 2^-8 (Blackwell) of the true ones: `UNSCALE`.
"""

from typing import Any

from cutlass import Int32

from dsv4chat.kernels.cute import arithmetic, ptx
from dsv4chat.kernels.cute.spread_order import HALVES, SHIFTS
from dsv4chat.kernels.cute.target import BLACKWELL

UNSCALE = 2.0**8 if BLACKWELL else 2.0**7
ONE_ROW_UNSCALE = 2.0**8 if BLACKWELL else 2.0**22  # with scales applied to sums, which are float32
MASK = HALVES & 0xFFFFFFFF
_TO_HOPPER = 0x78007800  # a pair of 2^15


def nvfp4_scales(word: Any) -> list[Any]:
    """A word of four E4M3 scales -> a pair of equal halves for each."""
    pairs = []
    for byte in range(4):
        selector = (byte << 4 | 7) | (byte << 4 | 7) << 8  # bytes: zero, b, zero, b; 7 is a byte of the zero
        pair = ptx.asm(
            f"{{ .reg .b32 d; prmt.b32 d, $1, 0, {selector:#x}; shr.b32 $0, d, 1; }}", [Int32], [word]
        )
        pairs.append(pair if BLACKWELL else arithmetic.multiply_f16(pair, Int32(_TO_HOPPER)))
    return pairs


def nvfp4_block_scales(words: Any, selector: Any) -> list[Any]:
    """Two words of four E4M3 scales, one of each word's two blocks of each chunk -> [chunk][word] Float32.

    selector: 0x6420 for first blocks, 0x7531 for second ones.
    """
    first, second = words
    chosen = ptx.asm("prmt.b32 $0, $1, $2, $3;", [Int32], [first, second, selector])
    return [
        arithmetic.unpack_f16(
            ptx.asm(f"{{ .reg .b32 d; {move}; and.b32 $0, d, 0x3F803F80; }}", [Int32], [chosen])
        )
        for move in ("shl.b32 d, $1, 7", "shr.u32 d, $1, 1")
    ]


def nvfp4_word(word: Any, scale: Any) -> Any:
    """Eight codes -> four pairs of halves, each times the pair `scale`."""
    return [arithmetic.multiply_f16(pair, scale) for pair in nvfp4_codes(word)]


def nvfp4_codes(word: Any) -> Any:
    """Eight codes -> four pairs of halves: the values on Blackwell, 2^-14 times the values on Hopper."""
    if BLACKWELL:
        return ptx.asm(
            "{ .reg .b8 a, b, c, d; mov.b32 {a, b, c, d}, $4;\n"
            "cvt.rn.f16x2.e2m1x2 $0, a; cvt.rn.f16x2.e2m1x2 $1, b;\n"
            "cvt.rn.f16x2.e2m1x2 $2, c; cvt.rn.f16x2.e2m1x2 $3, d; }",
            [Int32] * 4,
            [word],
        )
    steps = []
    for pair, (left, added) in enumerate(SHIFTS):
        steps.append(f"shl.b32 a, $4, {left};" if left > 0 else f"shr.u32 a, $4, {-left};")
        if added:
            steps.append("xor.b32 a, a, $4;")
        steps.append(f"and.b32 ${pair}, a, {MASK:#x};")
    return ptx.asm(f"{{ .reg .b32 a; {' '.join(steps)} }}", [Int32] * 4, [word])
