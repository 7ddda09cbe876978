"""Where Hopper's kernels want the bits of NVFP4 codes: 8 codes are still 32 bits, nothing is lost.

A half holds E2M1 times 2^-14 when the sign is at bit 15 and the magnitude at bits 9 to 11. Of eight codes the
even ones go to the lower half of a word, the odd ones to the upper half, and the word w is such that under
one mask, `HALVES`,

    w << 6             are codes 0 and 1
    w << 9             are codes 2 and 3
    w ^ (w >> 3)       are codes 4 and 5
    w ^ (w << 2)       are codes 6 and 7

which is eight instructions, as an exclusive or and a mask are one. It can be solved for w whatever the codes
are: `kernels.spread` does.
"""

HALVES = 0x8E008E00 - (1 << 32)  # sign and magnitude of both halves, as an int32
# How far to the left, and whether the word itself is combined with that, by exclusive or.
SHIFTS = ((6, False), (9, False), (-3, True), (2, True))
