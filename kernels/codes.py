"""The number formats that quantised weights are made of: 4-bit E2M1 codes, E8M0 and E4M3 scales.

E2M1 (OCP microscaling formats 1.0): bit 3 is the sign, codes 0..7 are 0, 0.5, 1, 1.5, 2, 3, 4, 6. Two codes
share a byte, the even column in the low nibble. E8M0: a byte b means 2^(b - 127), 255 is NaN. E4M3: FP8 with
largest value 448 and smallest step 2^-9.
"""

from functools import cache

import torch

from dsv4chat.kernels.power_of_two import scale_byte

E2M1_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
E2M1_LARGEST = 6.0
E4M3_LARGEST = 448.0
E4M3_SMALLEST = 2.0**-9

# Half-way points between neighbouring values, and whether a tie goes up: always to the even code.
_MIDPOINTS = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)

# Elements worked on at once: keeps temporaries in the cache and out of the memory bill.
CHUNK_ELEMENTS = 1 << 20


class FormatError(ValueError):
    """Tensors that do not form a weight of the stated format, or values that it cannot hold."""


def require(condition: bool, sentence: str) -> None:
    """Raise FormatError(sentence) unless `condition`."""
    if not condition:
        raise FormatError(sentence)


def require_finite(values: torch.Tensor) -> None:
    """Refuse NaN and infinity, which no scale can hold."""
    require(bool(torch.isfinite(values).all()), "The matrix holds NaN or infinity and cannot be quantised.")


def row_chunks(rows: int, columns: int) -> list[slice]:
    """Slices over `rows` of about CHUNK_ELEMENTS elements each."""
    step = max(1, CHUNK_ELEMENTS // max(1, columns))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


@cache
def _code_pairs(device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """(256,) integers: the two values of each packed byte, side by side."""
    values = torch.tensor([*E2M1_VALUES, *(-value for value in E2M1_VALUES)], device=device, dtype=dtype)
    byte = torch.arange(256, device=device)
    pairs = torch.stack([values[byte & 15], values[byte >> 4]], dim=1)
    return pairs.view(torch.int64 if dtype == torch.float32 else torch.int32).flatten()


def decode_e2m1(packed: torch.Tensor, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Packed codes u8 (rows, columns/2) -> (rows, columns) of `dtype`, float32 or bfloat16."""
    pairs = _code_pairs(packed.device, dtype).index_select(0, packed.flatten().int())
    return pairs.view(dtype).view(packed.shape[0], -1)


def encode_e2m1(values: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    """Codes of `values` in units of `steps`, rounded once to nearest, ties to the even code, saturating at 6.

    values: (rows, blocks, size) float; steps: (rows, blocks) float64, the value of 1.0 in a block (0: all
    codes are 0). Exact: a midpoint times a step has at most 31 significant bits, which float64 holds.
    Returns packed u8 (rows, blocks * size / 2).
    """
    magnitude = values.double().abs()
    codes = torch.zeros(values.shape, dtype=torch.uint8, device=values.device)
    for code, midpoint in enumerate(_MIDPOINTS):
        edge = (steps * midpoint).unsqueeze(-1)
        codes += magnitude > edge if code % 2 == 0 else magnitude >= edge
    codes *= (steps > 0).unsqueeze(-1)
    codes |= torch.signbit(values).to(torch.uint8) << 3
    codes = codes.flatten(1)
    return codes[:, 0::2] | (codes[:, 1::2] << 4)


def e8m0_values(scales: torch.Tensor) -> torch.Tensor:
    """E8M0 bytes (u8) -> float32 powers of two."""
    return scales.view(torch.float8_e8m0fnu).float()


def e8m0_for(largest: torch.Tensor, limit: float) -> torch.Tensor:
    """The smallest E8M0 byte that keeps `largest` (float32, >= 0) within `limit`; 127 (= 1) for zero."""
    return torch.where(largest > 0, scale_byte(largest, limit), 127).to(torch.uint8)
