"""Rounding a few rows on the CPU with few calls: what `kv_rows` does, for the batch of one of a decode step.

A small array operation costs about a microsecond in numpy and more in torch. So a row goes through
buffers that exist already: numpy for the arithmetic, torch for the casts that numpy lacks. The bytes and
values are the same.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dsv4chat.kernels.kv_rows import FP4_LIMIT, FP8_LIMIT, FP8_SMALLEST_AMAX, Fp4Keys, Fp8Rows, Rows
from dsv4chat.kernels.power_of_two import E8M0_BIAS, SMALLEST_EXPONENT

Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]


class SingleRow:
    """Rounds rows of a plain format. Both results are overwritten by the next call.

    stored: (1, width) tensor of the format; values: (1, d) float32 tensor of the rounded values.
    """

    def __init__(self, format: Rows, d: int) -> None:
        self.stored: Tensor = torch.zeros(1, format.width, dtype=format.dtype)
        self.values: Tensor = torch.zeros(1, d)
        self.bytes: Bytes = self.stored.view(torch.uint8).numpy()[0]
        self.floats: Floats = self.values.numpy()[0]

    def round(self, row: Floats) -> None:
        """Round `row` (d,)."""
        self.floats[:] = row
        if self.stored.dtype == torch.float32:
            self.bytes.view(np.float32)[:] = row
        else:
            self.stored.copy_(self.values)
            self.values.copy_(self.stored)

    def query(self, query: Floats) -> Floats:
        """What a query (h, d) becomes before it meets rows of this format."""
        return query


class SingleFp8Row(SingleRow):
    """Rounds `Fp8Rows` rows."""

    def __init__(self, format: Fp8Rows, d: int) -> None:
        super().__init__(format, d)
        codes_end = format.rope_bytes + format.plain
        self._stored_rope = self.stored[0, : format.rope_bytes].view(torch.bfloat16)
        self._rope = self.values[0, format.plain :]
        self._codes = self.stored[0, format.rope_bytes : codes_end].view(torch.float8_e4m3fn)
        self._plain = self.values[0, : format.plain]
        self._scales = self.bytes[codes_end : codes_end + format.groups]
        self._starts = np.arange(0, format.plain, format.group)
        self._lengths = np.diff([*self._starts, format.plain])

    def round(self, row: Floats) -> None:
        self.floats[:] = row
        self._stored_rope.copy_(self._rope)
        self._rope.copy_(self._stored_rope)
        if not self._starts.size:
            return
        plain = self.floats[: self._plain.shape[0]]
        amax = np.maximum.reduceat(np.abs(plain), self._starts)
        byte, scale = _scales(np.maximum(amax, np.float32(FP8_SMALLEST_AMAX)), FP8_LIMIT)
        self._scales[:] = byte
        spread = scale if scale.size == 1 else np.repeat(scale, self._lengths)
        np.divide(plain, spread, out=plain)
        self._codes.copy_(self._plain)
        self._plain.copy_(self._codes)
        np.multiply(plain, spread, out=plain)


class SingleFp4Key(SingleRow):
    """Rounds `Fp4Keys` rows and queries."""

    def __init__(self, format: Fp4Keys, d: int) -> None:
        super().__init__(format, d)
        self._rotation = format.rotation.numpy()
        self._boundaries = format.boundaries.numpy()
        self._pairs = format.pairs.numpy()
        self._half = format.codes
        self._group = format.group

    def round(self, row: Floats) -> None:
        packed, byte, scale = self._pack(row[None])
        self.bytes[: self._half] = packed[0]
        self.bytes[self._half :] = byte[0]
        self.floats[:] = self._unpack(packed, scale)[0]

    def query(self, query: Floats) -> Floats:
        packed, _, scale = self._pack(query)
        return self._unpack(packed, scale)

    def _pack(self, rows: Floats) -> tuple[Bytes, Bytes, Floats]:
        """Codes (n, d / 2), scale bytes and scales (n, d / group) of rows before their rotation."""
        n = rows.shape[0]
        grouped = np.dot(rows, self._rotation).reshape(n, -1, self._group)
        byte, scale = _scales(np.abs(grouped).max(axis=2), FP4_LIMIT)
        scaled = (grouped / scale[:, :, None]).reshape(n, -1)
        codes = np.searchsorted(self._boundaries, np.abs(scaled)).astype(np.uint8) | (scaled < 0) * np.uint8(
            8
        )
        return codes[:, 0::2] | (codes[:, 1::2] << 4), byte, scale

    def _unpack(self, packed: Bytes, scale: Floats) -> Floats:
        n = packed.shape[0]
        values: Floats = self._pairs[packed].reshape(n, -1, self._group) * scale[:, :, None]
        return values.reshape(n, -1)


def single_row(format: Rows, d: int) -> SingleRow:
    """The single-row form of a format of d channels."""
    if isinstance(format, Fp8Rows):
        return SingleFp8Row(format, d)
    return SingleFp4Key(format, d) if isinstance(format, Fp4Keys) else SingleRow(format, d)


def _scales(amax: Floats, limit: float) -> tuple[Bytes, Floats]:
    """`power_of_two.scale_byte` and `scale_value` of numpy arrays."""
    limit_mantissa, limit_exponent = np.frexp(np.float32(limit))
    mantissa, exponent = np.frexp(amax)
    exponent = exponent + ((mantissa > limit_mantissa) - limit_exponent)
    exponent = np.minimum(np.maximum(exponent, SMALLEST_EXPONENT), E8M0_BIAS)
    return (exponent + E8M0_BIAS).astype(np.uint8), np.ldexp(np.float32(1.0), exponent)
