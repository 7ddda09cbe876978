"""FP8 weights: E4M3 values with one scale for every 128 x 128 tile.

value = code * scale; scales are E8M0 powers of two in DeepSeek's releases, float32 factors in other builds.
"""

from dataclasses import dataclass

import torch

from dsv4chat.kernels.codes import E4M3_LARGEST, e8m0_for, e8m0_values, require, require_finite

TILE = 128


@dataclass(frozen=True)
class FP8Weight:
    """A matrix (out, in).

    codes: E4M3 (out, in); scales (ceil(out/128), ceil(in/128)): u8 E8M0, or float32 factors.
    """

    codes: torch.Tensor
    scales: torch.Tensor

    def __post_init__(self) -> None:
        require(
            self.codes.dim() == 2
            and self.codes.dtype == torch.float8_e4m3fn
            and self.scales.dtype in (torch.uint8, torch.float32)
            and tuple(self.scales.shape) == tile_shape(self.codes.shape),
            f"An FP8 matrix needs codes (out, in) and one scale a {TILE} x {TILE} tile, "
            f"not {tuple(self.codes.shape)} and {tuple(self.scales.shape)}.",
        )

    @classmethod
    def quantize(cls, matrix: torch.Tensor) -> "FP8Weight":
        """Round a float matrix (out, in) to nearest, with scale 2^ceil(log2(largest / 448)) a tile.

        Raises FormatError if it holds NaN or infinity.
        """
        require(matrix.dim() == 2, f"FP8 tiles need a matrix, not {tuple(matrix.shape)}.")
        require_finite(matrix)
        rows, columns = matrix.shape
        codes = torch.empty((rows, columns), dtype=torch.float8_e4m3fn, device=matrix.device)
        scales = torch.empty(tile_shape(matrix.shape), dtype=torch.uint8, device=matrix.device)
        padding = -columns % TILE
        for row in range(scales.shape[0]):
            part = slice(row * TILE, min((row + 1) * TILE, rows))
            strip = matrix[part].float()
            largest = torch.nn.functional.pad(strip.abs().amax(dim=0), (0, padding))
            scales[row] = e8m0_for(largest.view(-1, TILE).amax(dim=1), E4M3_LARGEST)
            codes[part] = (strip / _across(e8m0_values(scales[row]), columns)).to(torch.float8_e4m3fn)
        return cls(codes, scales)

    @property
    def shape(self) -> torch.Size:
        """(out, in) of the matrix."""
        return self.codes.shape

    @property
    def device(self) -> torch.device:
        """Where the codes are."""
        return self.codes.device

    @property
    def nbytes(self) -> int:
        """Bytes of codes and scales."""
        return self.codes.nbytes + self.scales.nbytes

    def to(self, device: torch.device | str) -> "FP8Weight":
        """The same weight on `device`."""
        return FP8Weight(self.codes.to(device), self.scales.to(device))

    def rows(self, start: int, stop: int) -> "FP8Weight":
        """Rows start..stop as views of the same memory; `start` must lie on a tile's edge."""
        require(start % TILE == 0, f"FP8 rows can be cut at multiples of {TILE} only, not at {start}.")
        return FP8Weight(self.codes[start:stop], self.scales[start // TILE : -(-stop // TILE)])

    def factors(self) -> torch.Tensor:
        """The scales as float32 factors."""
        return e8m0_values(self.scales) if self.scales.dtype == torch.uint8 else self.scales

    def dequantize(self, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """(out, in) values: exact in float32 with power-of-two scales, then rounded to `dtype`."""
        rows, columns = self.shape
        result = torch.empty(self.shape, dtype=dtype, device=self.device)
        for row, factors in enumerate(self.factors()):
            part = slice(row * TILE, min((row + 1) * TILE, rows))
            result[part] = self.codes[part].float() * _across(factors, columns)
        return result


def tile_shape(shape: torch.Size) -> tuple[int, int]:
    """Tiles down and across a matrix."""
    return -(-shape[0] // TILE), -(-shape[1] // TILE)


def _across(factors: torch.Tensor, columns: int) -> torch.Tensor:
    """One factor a tile -> one a column."""
    return factors.repeat_interleave(TILE)[:columns]
