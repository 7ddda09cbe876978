"""Where Hopper's kernels want the bits of NVFP4 codes: 8 codes are still 32 bits, nothing is lost.

A half holds E2M1 times 2^-14 when the sign is at bit 15 and the magnitude at bits 9 to 11. Of eight codes the
even ones go to the lower half of a word, the odd ones to the upper half, and within a half

    codes     sign   magnitude   what brings them to bit 15 and bits 9 to 11
    0, 1       15       9..11    nothing
    2, 3       12       6..8     times 2^3
    4, 5       14       3..5     times 2^1 + 2^6
    6, 7       13       0..2     times 2^2 + 2^9

so that a mask, and at most one more mask and a multiplication, make two halves. Multiplying by two powers
moves sign and magnitude at once; what the other power leaves lies outside the final mask and carries nothing
into it. `kernels.spread` brings codes into this order.
"""

HALVES = 0x8E008E00 - (1 << 32)  # sign and magnitude of both halves, as an int32
# What the codes from 2, 4 and 6 on are masked with, and multiplied by.
STEPS = ((0x11C011C0, 1 << 3), (0x40384038, (1 << 1) + (1 << 6)), (0x20072007, (1 << 2) + (1 << 9)))
PLACES = ((15, 9), (12, 6), (14, 3), (13, 0))  # sign and magnitude of a half's codes, lowest first
