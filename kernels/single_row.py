"""Rounding a few rows on the CPU with few calls: what `kv_rows` does, for the batch of one of a decode step.

A small array operation costs about a microsecond in numpy and more in torch. So a row goes through
buffers that exist already: numpy for the arithmetic, torch for the casts that numpy lacks. The bytes and
values are the same.
"""

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dsv4chat.kernels.kv_rows import FP8_LIMIT, FP8_SMALLEST_AMAX, Fp4Keys, Fp8Rows, Rows
from dsv4chat.kernels.power_of_two import E8M0_BIAS, SMALLEST_EXPONENT

Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]
FP8_SMALLEST_AMAX_FLOAT32 = float(np.float32(FP8_SMALLEST_AMAX))


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
        self._groups = [
            self.floats[start : min(start + format.group, format.plain)] for start in self._starts
        ]

    def round(self, row: Floats) -> None:
        self.floats[:] = row
        self._stored_rope.copy_(self._rope)
        self._rope.copy_(self._stored_rope)
        if not self._groups:
            return
        magnitudes = np.abs(self.floats[: self._plain.shape[0]])
        scales = []
        for number, amax in enumerate(np.maximum.reduceat(magnitudes, self._starts).tolist()):
            exponent = _scale_exponent(max(amax, FP8_SMALLEST_AMAX_FLOAT32), FP8_LIMIT)
            scales.append(np.float32(math.ldexp(1.0, exponent)))
            self._scales[number] = exponent + E8M0_BIAS
            self._groups[number] /= scales[number]
        self._codes.copy_(self._plain)
        self._plain.copy_(self._codes)
        for group, scale in zip(self._groups, scales, strict=True):
            group *= scale


class SingleFp4Key(SingleRow):
    """Rounds `Fp4Keys` rows and queries."""

    def __init__(self, format: Fp4Keys, d: int) -> None:
        super().__init__(format, d)
        self._rotation: Floats = format.rotation.numpy()
        self._group = format.group
        self._packed = self.bytes[: format.codes]
        self._scales = self.bytes[format.codes :]
        # Twice a magnitude -> its code.
        self._codes = np.zeros(13, np.uint8)
        self._codes[[0, 1, 2, 3, 4, 6, 8, 12]] = range(8)

    def round(self, row: Floats) -> None:
        values, exponent = self._round(row[None])
        np.ldexp(values, exponent, out=self.floats.reshape(values.shape))
        # fmin: a damaged value must not become an index.
        codes = self._codes[np.fmin(np.abs(values * 2), 12).astype(np.intp)].reshape(-1)
        codes |= np.signbit(values).reshape(-1).astype(np.uint8) << 3
        self._packed[:] = codes[0::2] | (codes[1::2] << 4)
        self._scales[:] = exponent[:, 0] + E8M0_BIAS

    def query(self, query: Floats) -> Floats:
        values, exponent = self._round(query)
        rounded: Floats = np.ldexp(values, exponent).reshape(query.shape)
        return rounded

    def _round(self, rows: Floats) -> tuple[Floats, npt.NDArray[np.int32]]:
        """E2M1 values (groups, group) of the rotated rows (n, d), and the exponents (groups, 1) of their
        scales.
        """
        grouped = np.dot(rows, self._rotation).reshape(-1, self._group)
        # Exact scale: the smallest power of two s with amax <= 6 s; 6 = 0.75 * 2^3.
        mantissa, exponent = np.frexp(np.abs(grouped).max(axis=1, keepdims=True))
        exponent += (mantissa > 0.75) - 3
        np.maximum(exponent, SMALLEST_EXPONENT, out=exponent)
        scaled = np.ldexp(grouped, -exponent)
        # E2M1 has steps of 1/2 below 2, of 1 below 4 and of 2 up to 6: whole steps, ties to even.
        step = np.maximum(np.frexp(scaled)[1] - 2, -1)
        return np.ldexp(np.rint(np.ldexp(scaled, -step)), step), exponent


def single_row(format: Rows, d: int) -> SingleRow:
    """The single-row form of a format of d channels."""
    if isinstance(format, Fp8Rows):
        return SingleFp8Row(format, d)
    return SingleFp4Key(format, d) if isinstance(format, Fp4Keys) else SingleRow(format, d)


def _scale_exponent(amax: float, limit: float) -> int:
    """Exponent of the smallest power of two s with amax <= limit * s, as `power_of_two.scale_byte` has it."""
    limit_mantissa, limit_exponent = math.frexp(limit)
    mantissa, exponent = math.frexp(amax)
    exponent += (mantissa > limit_mantissa) - limit_exponent
    return min(max(exponent, SMALLEST_EXPONENT), E8M0_BIAS)
