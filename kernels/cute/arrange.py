"""How the kernels want a matrix: codes as they are stored, but NVFP4 and FP8 of whole units in groups of rows
(`kernels.grouping`), and on Hopper those of NVFP4 with their bits spread (`kernels.spread`); scales in the
order in which lanes need them, of NVFP4 grouped as the codes are.

NVFP4, per row and unit of 256 columns: lane t of a quad takes the 16-byte chunks t and t + 4 of the unit's
codes; each chunk has two block scales, and all four lie together:

    (units, 2 chunks, 4 lanes, 2) -> (units, 4 lanes, 2 chunks, 2)        bytes, zero beyond the last column

FP8: one float32 a tile, whatever the scales were stored as. Nothing is rounded.
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from dsv4chat.kernels.codes import e8m0_values
from dsv4chat.kernels.fp8 import TILE
from dsv4chat.kernels.grouping import ROWS, groupable, grouped_scales
from dsv4chat.kernels.packed import Packed

_UNIT_SCALES = 16
# Columns a 16-byte chunk holds, and columns a warp takes at once.
CHUNK = {"nvfp4": 32, "fp8": 16, "bf16": 8}
UNIT = {"nvfp4": 256, "fp8": 128, "bf16": 64}
_NAMES = {"NVFP4": "nvfp4", "FP8": "fp8"}


def quad_scales(scales: Tensor) -> Tensor:
    """E4M3 block scales (..., columns / 16) -> u8 (..., units * 16) in the lanes' order."""
    raw = scales.view(torch.uint8)
    padded = F.pad(raw, (0, -raw.shape[-1] % _UNIT_SCALES))
    quads = padded.view(*padded.shape[:-1], -1, 2, 4, 2).transpose(-2, -3)
    return quads.reshape(padded.shape)


@dataclass(frozen=True)
class Matrix:
    """One matrix (rows, columns), or e of them, ready for a kernel.

    codes: as in `Packed`; scales: None, u8 quads or float32 tiles; factors: float32, one a row, or None;
    grouped: whether codes and scales lie in groups of rows.
    """

    format: str
    rows: int
    columns: int
    codes: Tensor
    scales: Tensor | None
    factors: Tensor | None
    grouped: bool = False

    @property
    def exact(self) -> bool:
        """Whether there are whole units only, in groups unless it is bfloat16."""
        return self.columns % UNIT[self.format] == 0 if self.format == "bf16" else self.grouped

    @property
    def units(self) -> int:
        """Units a row has, the last perhaps short."""
        return -(-self.columns // UNIT[self.format])

    @property
    def codes_bytes(self) -> int:
        """Bytes from one matrix's codes to the next one's."""
        return self.codes.nbytes // self.count

    @property
    def scales_bytes(self) -> int:
        """Bytes from one matrix's scales to the next one's."""
        return 0 if self.scales is None else self.scales.nbytes // self.count

    @property
    def count(self) -> int:
        """How many matrices there are."""
        return self.codes.shape[0] if self.codes.dim() == 3 else 1

    @property
    def nbytes(self) -> int:
        """Bytes a product with all of them reads."""
        return sum(part.nbytes for part in (self.codes, self.scales, self.factors) if part is not None)

    def first(self, rows: int) -> "Matrix":
        """The first rows, up to a tile's end, of one matrix, in the same memory."""
        step = TILE if self.format == "fp8" else ROWS
        kept = min(self.rows, -(-rows // step) * step)
        scales = self.scales
        if scales is not None:
            scales = scales[: -(-kept // step) if self.format == "fp8" else kept]
        factors = None if self.factors is None else self.factors[:kept]
        return replace(self, rows=kept, codes=self.codes[:kept], scales=scales, factors=factors)

    def kernel(self, family: str) -> str:
        """Name of the kernel for it."""
        return f"{family}_{self.format}{'' if self.exact else '_ragged'}"


def matrix(packed: Packed, spread: bool = False) -> Matrix | None:
    """A matrix ready for a kernel, sharing the codes; None when no kernel takes it: MXFP4 and float32,
    columns that are no multiple of 32 (NVFP4), 16 (FP8) or 8 (bfloat16), or codes that are not contiguous.

    spread: NVFP4 codes are wanted in the order of `kernels.spread`. Codes in another order than is wanted are
    copied.
    """
    format = _NAMES.get(packed.format)
    if packed.format == "plain" and packed.codes.dtype == torch.bfloat16:
        format = "bf16"
    rows, columns = packed.shape[-2:]
    if format is None or columns % CHUNK[format] or not packed.codes.is_contiguous():
        return None
    grouped = format != "bf16" and groupable(packed.codes)
    if (spread and format == "nvfp4" and not packed.spread) or grouped != packed.grouped:
        packed = replace(packed, codes=packed.codes.clone()).arranged(spread)
    scales, codes = packed.scales, packed.codes
    if format == "nvfp4":
        assert scales is not None
        scales = quad_scales(scales)
        if grouped:
            scales = grouped_scales(scales)
    elif format == "fp8":
        assert scales is not None
        scales = (e8m0_values(scales) if scales.dtype == torch.uint8 else scales).contiguous()
    factors = packed.row_factor
    factors = None if factors is None else factors.contiguous()
    return Matrix(format, rows, columns, codes, scales, factors, grouped)
