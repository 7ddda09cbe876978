"""NVFP4 weights: 4-bit codes, an E4M3 scale for every 16 columns of a row, one float32 scale a matrix.

value = code * scale * scale_2. Rounding is to nearest, ties to the even code, in one step: rounding first to
a wider format and then to 4 bits puts values next to a midpoint on the wrong code.
"""

from dataclasses import dataclass

import torch

from dsv4chat.kernels.codes import (
    E2M1_LARGEST,
    E4M3_LARGEST,
    E4M3_SMALLEST,
    decode_e2m1,
    encode_e2m1,
    require,
    require_finite,
    row_chunks,
)
from dsv4chat.kernels.mxfp4 import MXFP4Weight

BLOCK = 16

# E4M3 holds every power of two from 2^-9 to 2^8, so block exponents may span this much without loss.
LOSSLESS_SPAN = 17
_TOP_POWER = 8


@dataclass(frozen=True)
class NVFP4Weight:
    """A matrix (out, in).

    codes: u8 (out, in/2), even column in the low nibble; scales: E4M3 (out, in/16), rows in order; scale_2:
    float32 of no dimension.
    """

    codes: torch.Tensor
    scales: torch.Tensor
    scale_2: torch.Tensor

    def __post_init__(self) -> None:
        require(
            self.codes.dim() == 2
            and self.codes.dtype == torch.uint8
            and self.scales.dtype == torch.float8_e4m3fn
            and self.scales.shape == (self.codes.shape[0], self.codes.shape[1] * 2 // BLOCK)
            and self.codes.shape[1] * 2 % BLOCK == 0
            and self.scale_2.dtype == torch.float32
            and self.scale_2.dim() == 0,
            f"An NVFP4 matrix needs codes (out, in/2), scales (out, in/{BLOCK}) and one float32 scale, "
            f"not {tuple(self.codes.shape)}, {tuple(self.scales.shape)} and {tuple(self.scale_2.shape)}.",
        )

    @classmethod
    def quantize(cls, matrix: torch.Tensor, scale_2: float | None = None) -> "NVFP4Weight":
        """Round a float matrix (out, in).

        scale_2: the per-matrix scale; by default largest / (6 * 448), the smallest that cuts nothing. Give it
        when several matrices must share one; values beyond 6 * 448 * scale_2 are cut there. Block scales are
        largest / (6 * scale_2) rounded to E4M3, never to zero while the block has a value.
        Raises FormatError if the matrix holds NaN or infinity, or `in` is not a multiple of 16.
        """
        require(
            matrix.dim() == 2 and matrix.shape[1] % BLOCK == 0,
            f"NVFP4 needs a matrix whose columns are a multiple of {BLOCK}, not {tuple(matrix.shape)}.",
        )
        require_finite(matrix)
        rows, columns = matrix.shape
        if scale_2 is None:
            scale_2 = _default_scale_2(matrix)
        require(scale_2 > 0, f"The per-matrix scale of NVFP4 must be above 0, not {scale_2}.")
        shared = torch.tensor(scale_2, dtype=torch.float32, device=matrix.device)
        scales = matrix.new_empty((rows, columns // BLOCK), dtype=torch.float8_e4m3fn)
        codes = matrix.new_empty((rows, columns // 2), dtype=torch.uint8)
        for part in row_chunks(rows, columns):
            blocks = matrix[part].reshape(-1, columns // BLOCK, BLOCK)
            largest = blocks.double().abs().amax(dim=-1)
            wanted = (largest / (E2M1_LARGEST * shared.double())).clamp(E4M3_SMALLEST, E4M3_LARGEST)
            scales[part] = torch.where(largest > 0, wanted, 0.0).float().to(torch.float8_e4m3fn)
            codes[part] = encode_e2m1(blocks, scales[part].double() * shared.double())
        return cls(codes, scales, shared)

    @classmethod
    def from_mxfp4(cls, weight: MXFP4Weight) -> "NVFP4Weight | None":
        """The same values with the same codes, or None where NVFP4 cannot hold them.

        Possible whenever the exponents of the blocks that are not all zero span at most 17.
        """
        used = ((weight.codes & 0x77) != 0).view(*weight.scales.shape, 16).any(dim=-1)
        exponents = weight.scales.int() - 127
        if not bool(used.any()):
            exponents = torch.zeros_like(exponents)
            top = 0
        else:
            top, low = int(exponents[used].max()), int(exponents[used].min())
            if top - low > LOSSLESS_SPAN or top == 128:  # 128: the byte 255, which is NaN
                return None
        powers = torch.where(used, exponents - top + _TOP_POWER, 0)
        scales = torch.where(used, torch.exp2(powers.float()), 0.0).to(torch.float8_e4m3fn)
        scale_2 = torch.tensor(2.0 ** (top - _TOP_POWER), dtype=torch.float32, device=weight.device)
        return cls(weight.codes, scales.repeat_interleave(2, dim=1), scale_2)

    @property
    def shape(self) -> torch.Size:
        """(out, in) of the matrix."""
        return torch.Size((self.codes.shape[0], self.codes.shape[1] * 2))

    @property
    def device(self) -> torch.device:
        """Where the codes are."""
        return self.codes.device

    @property
    def nbytes(self) -> int:
        """Bytes of codes and scales."""
        return self.codes.nbytes + self.scales.nbytes + self.scale_2.nbytes

    def to(self, device: torch.device | str) -> "NVFP4Weight":
        """The same weight on `device`."""
        return NVFP4Weight(self.codes.to(device), self.scales.to(device), self.scale_2.to(device))

    def rows(self, start: int, stop: int) -> "NVFP4Weight":
        """Rows start..stop as views of the same memory."""
        return NVFP4Weight(self.codes[start:stop], self.scales[start:stop], self.scale_2)

    def dequantize(self, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """(out, in) values, rounded once to float32 (code * scale is exact there), then to `dtype`."""
        result = torch.empty(self.shape, dtype=dtype, device=self.device)
        for part in row_chunks(*self.shape):
            blocks = decode_e2m1(self.codes[part]).view(-1, self.scales.shape[1], BLOCK)
            blocks *= self.scales[part].float().unsqueeze(-1)
            blocks *= self.scale_2
            result[part] = blocks.flatten(1)
        return result


def _default_scale_2(matrix: torch.Tensor) -> float:
    """largest / (6 * 448) in float32; 1 for a matrix of zeros, and never so small that float32 loses it."""
    largest = float(matrix.abs().max()) if matrix.numel() else 0.0
    if largest == 0.0:
        return 1.0
    smallest_normal = torch.finfo(torch.float32).tiny
    return max(largest / (E2M1_LARGEST * E4M3_LARGEST), smallest_normal)
