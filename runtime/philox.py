"""A counter-based random generator: one draw is a pure function of (seed, step).

Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011), computed
in integers, so that every device, thread count and order of calls gives the same number.
"""

MULTIPLIER_0, MULTIPLIER_1 = 0xD2511F53, 0xCD9E8D57
WEYL_0, WEYL_1 = 0x9E3779B9, 0xBB67AE85
_MASK = 0xFFFFFFFF
ROUNDS = 10

SEED_LIMIT = 1 << 64


def philox4x32(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Four 32-bit words from a 128-bit counter and a 64-bit key, least significant word first."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        product_0, product_1 = MULTIPLIER_0 * c0, MULTIPLIER_1 * c2
        c0, c1, c2, c3 = (
            (product_1 >> 32) ^ c1 ^ k0,
            product_1 & _MASK,
            (product_0 >> 32) ^ c3 ^ k1,
            product_0 & _MASK,
        )
        k0, k1 = (k0 + WEYL_0) & _MASK, (k1 + WEYL_1) & _MASK
    return c0, c1, c2, c3


def uniform(seed: int, step: int) -> float:
    """The draw of `step` for `seed`: a multiple of 2^-53 in [0, 1). seed in 0..2^64-1, step in 0..2^64-1."""
    words = philox4x32((step & _MASK, step >> 32, 0, 0), (seed & _MASK, seed >> 32))
    return ((words[0] << 21) | (words[1] >> 11)) * 2.0**-53
