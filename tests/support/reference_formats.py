"""The quantised formats by definition, in NumPy float64: what the tests hold the kernels against.

Encoders pick any scales and the nearest codes; decoders are exact (code x scale x scale has at most 30
significant bits). Nothing here is shared with the code under test.
"""

import math

import numpy as np

E2M1 = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
# Values of the 16 codes: bit 3 is the sign.
E2M1_CODES = np.concatenate([E2M1, -E2M1])


def e4m3_value(byte: int) -> float:
    """Value of an FP8 E4M3 byte (no infinities; 0x7f and 0xff are NaN)."""
    sign = -1.0 if byte & 0x80 else 1.0
    exponent, mantissa = (byte >> 3) & 15, byte & 7
    if exponent == 15 and mantissa == 7:
        return math.nan
    if exponent == 0:
        return sign * mantissa * 2.0**-9
    return sign * (8 + mantissa) * 2.0 ** (exponent - 10)


E4M3_CODES = np.array([e4m3_value(byte) for byte in range(256)])
E8M0_CODES = np.array([2.0 ** (byte - 127) for byte in range(255)] + [math.nan])


def nearest_code(values: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Index of the nearest entry of the ascending `table` for values >= 0; ties to the even index."""
    above = np.clip(np.searchsorted(table, values), 1, len(table) - 1)
    below = above - 1
    to_below, to_above = values - table[below], table[above] - values
    tie = np.where(below % 2 == 0, below, above)
    return np.where(to_below < to_above, below, np.where(to_below > to_above, above, tie)).astype(np.uint8)


def nearest_e2m1(values: np.ndarray) -> np.ndarray:
    """4-bit codes of `values`, rounded to nearest, ties to the even code, saturating at 6."""
    return nearest_code(np.abs(values), E2M1) | (np.signbit(values).astype(np.uint8) << 3)


def nearest_e4m3(values: np.ndarray) -> np.ndarray:
    """E4M3 bytes of `values`, rounded to nearest, ties to even, saturating at 448."""
    return nearest_code(np.abs(values), E4M3_CODES[:127]) | (np.signbit(values).astype(np.uint8) << 7)


def pack_nibbles(codes: np.ndarray) -> np.ndarray:
    """Two codes a byte along the last axis, the even column in the low nibble."""
    return codes[..., 0::2] | (codes[..., 1::2] << 4)


def unpack_nibbles(packed: np.ndarray) -> np.ndarray:
    """Inverse of `pack_nibbles`."""
    packed = packed.view(np.uint8)
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)


def _blocks(weight: np.ndarray, size: int) -> np.ndarray:
    return weight.reshape(weight.shape[0], -1, size)


def encode_nvfp4(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.float32]:
    """(out, in) -> packed codes u8 (out, in/2), block scale bytes (out, in/16), per-tensor scale."""
    blocks = _blocks(weight.astype(np.float64), 16)
    largest = np.abs(blocks).max(axis=-1)
    scale_2 = np.float32(largest.max() / (6 * 448))
    scales = np.maximum(nearest_e4m3(largest / 6 / float(scale_2)), 1)
    steps = E4M3_CODES[scales] * float(scale_2)
    return pack_nibbles(nearest_e2m1(blocks / steps[..., None]).reshape(weight.shape)), scales, scale_2


def decode_nvfp4(packed: np.ndarray, scales: np.ndarray, scale_2: float) -> np.ndarray:
    """Exact float64 values of an NVFP4 matrix: code * block scale * per-tensor scale."""
    codes = _blocks(E2M1_CODES[unpack_nibbles(packed)], 16)
    return (codes * E4M3_CODES[scales][..., None] * float(scale_2)).reshape(packed.shape[0], -1)


def encode_mxfp4(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(out, in) -> packed codes (out, in/2), E8M0 scale bytes (out, in/32)."""
    blocks = _blocks(weight.astype(np.float64), 32)
    exponents = np.ceil(np.log2(np.abs(blocks).max(axis=-1) / 6))
    codes = nearest_e2m1(blocks / np.exp2(exponents)[..., None])
    return pack_nibbles(codes.reshape(weight.shape)), (exponents + 127).astype(np.uint8)


def decode_mxfp4(packed: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Exact float64 values of an MXFP4 matrix: code * 2^(byte - 127)."""
    codes = _blocks(E2M1_CODES[unpack_nibbles(packed)], 32)
    return (codes * E8M0_CODES[scales][..., None]).reshape(packed.shape[0], -1)


def spread_tiles(scales: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """One value a 128 x 128 tile -> one value an element of `shape`."""
    return np.repeat(np.repeat(scales, 128, axis=0), 128, axis=1)[: shape[0], : shape[1]]


def encode_fp8(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(out, in) -> E4M3 bytes (out, in), E8M0 scale bytes (ceil(out/128), ceil(in/128))."""
    rows, columns = weight.shape
    scales = np.empty((-(-rows // 128), -(-columns // 128)), np.uint8)
    for i, j in np.ndindex(*scales.shape):
        largest = np.abs(weight[i * 128 : (i + 1) * 128, j * 128 : (j + 1) * 128]).max()
        scales[i, j] = 127 + math.ceil(math.log2(largest / 448))
    return nearest_e4m3(weight.astype(np.float64) / spread_tiles(E8M0_CODES[scales], weight.shape)), scales


def decode_fp8(codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Exact float64 values of an FP8 matrix with one scale (a factor, not a byte) a 128 x 128 tile."""
    return E4M3_CODES[codes] * spread_tiles(scales, codes.shape)
