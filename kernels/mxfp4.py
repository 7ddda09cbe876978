"""MXFP4 weights: 4-bit codes with one power-of-two scale for every 32 columns of a row.

value = code * 2^(byte - 127). Source: OCP microscaling formats 1.0; DeepSeek-V4's routed experts come so.
"""

from dataclasses import dataclass

import torch

from dsv4chat.kernels.codes import (
    E2M1_LARGEST,
    decode_e2m1,
    e8m0_for,
    e8m0_values,
    encode_e2m1,
    require,
    require_finite,
    row_chunks,
)

BLOCK = 32


@dataclass(frozen=True)
class MXFP4Weight:
    """A matrix (out, in).

    codes: u8 (out, in/2), even column in the low nibble; scales: u8 E8M0 (out, in/32).
    """

    codes: torch.Tensor
    scales: torch.Tensor

    def __post_init__(self) -> None:
        require(
            self.codes.dim() == 2
            and self.codes.dtype == torch.uint8
            and self.scales.dtype == torch.uint8
            and self.scales.shape == (self.codes.shape[0], self.codes.shape[1] * 2 // BLOCK)
            and self.codes.shape[1] * 2 % BLOCK == 0,
            f"An MXFP4 matrix needs codes (out, in/2) and scales (out, in/{BLOCK}), "
            f"not {tuple(self.codes.shape)} and {tuple(self.scales.shape)}.",
        )

    @classmethod
    def quantize(cls, matrix: torch.Tensor) -> "MXFP4Weight":
        """Round a float matrix (out, in) with scale 2^ceil(log2(largest / 6)) a block.

        Raises FormatError if it holds NaN or infinity, or `in` is not a multiple of 32.
        """
        require(
            matrix.dim() == 2 and matrix.shape[1] % BLOCK == 0,
            f"MXFP4 needs a matrix whose columns are a multiple of {BLOCK}, not {tuple(matrix.shape)}.",
        )
        require_finite(matrix)
        rows, columns = matrix.shape
        scales = matrix.new_empty((rows, columns // BLOCK), dtype=torch.uint8)
        codes = matrix.new_empty((rows, columns // 2), dtype=torch.uint8)
        for part in row_chunks(rows, columns):
            blocks = matrix[part].float().reshape(-1, columns // BLOCK, BLOCK)
            scales[part] = e8m0_for(blocks.abs().amax(dim=-1), E2M1_LARGEST)
            codes[part] = encode_e2m1(blocks, e8m0_values(scales[part]).double())
        return cls(codes, scales)

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
        return self.codes.nbytes + self.scales.nbytes

    def to(self, device: torch.device | str) -> "MXFP4Weight":
        """The same weight on `device`."""
        return MXFP4Weight(self.codes.to(device), self.scales.to(device))

    def rows(self, start: int, stop: int) -> "MXFP4Weight":
        """Rows start..stop as views of the same memory."""
        return MXFP4Weight(self.codes[start:stop], self.scales[start:stop])

    def dequantize(self, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """(out, in) values, exact in float32 (within its range), then rounded to `dtype`."""
        result = torch.empty(self.shape, dtype=dtype, device=self.device)
        for part in row_chunks(*self.shape):
            blocks = decode_e2m1(self.codes[part]).view(-1, self.scales.shape[1], BLOCK)
            blocks *= e8m0_values(self.scales[part]).unsqueeze(-1)
            result[part] = blocks.flatten(1)
        return result
