"""How the rows of the key-value cache are stored, and what values come back.

`PlainRows`: float32 or bfloat16, all channels.
`Fp8Rows`: the non-RoPE channels as E4M3 with one power-of-two scale per 64 (the last group may be shorter),
    scale = 2^ceil(log2(max(amax, 1e-4) / 448)), the R RoPE channels as bfloat16. One row of bytes:

    [ RoPE: 2R | non-RoPE: d - R | scales, E8M0: ceil((d - R) / 64) | padding to a multiple of 8 ]

`Fp4Keys`: index keys, rotated by the Hadamard matrix, then E2M1 with one scale per 32,
    scale = 2^ceil(log2(amax / 6)). One row of bytes, even channel in the low nibble:

    [ codes: d / 2 | scales, E8M0: d / 32 ]

    Queries are rotated and rounded alike before they meet the keys.

`store` rounds, `load` gives exactly the rounded values back as float32: a row is stored before its first use,
so that every way of splitting the input attends to the same values.
"""

from typing import Protocol

import torch
from torch import Tensor

from dsv4chat.kernels import hadamard
from dsv4chat.kernels.power_of_two import scale_byte, scale_value

FP8_GROUP = 64
FP8_LIMIT = 448.0
FP8_SMALLEST_AMAX = 1e-4
FP4_GROUP = 32
FP4_LIMIT = 6.0
ROW_ALIGNMENT = 8


class Rows(Protocol):
    """A storage format of rows of `d` channels: `width` elements of `dtype` a row."""

    width: int
    dtype: torch.dtype

    def store(self, rows: Tensor) -> Tensor:
        """(n, d) float32 -> (n, width) of `dtype`."""

    def load(self, stored: Tensor) -> Tensor:
        """(n, width) -> (n, d) float32."""

    def query(self, query: Tensor) -> Tensor:
        """What a query (..., d) float32 becomes before it meets loaded rows; same shape."""


class PlainRows:
    """Rows as they are, in float32 or bfloat16."""

    def __init__(self, d: int, dtype: torch.dtype) -> None:
        self.width = d
        self.dtype = dtype

    def store(self, rows: Tensor) -> Tensor:
        return rows.to(self.dtype)

    def load(self, stored: Tensor) -> Tensor:
        return stored.float()

    def query(self, query: Tensor) -> Tensor:
        return query


class Fp8Rows:
    """E4M3 with power-of-two scales for all but the last `rope_dim` channels, which are bfloat16."""

    dtype = torch.uint8

    def __init__(self, d: int, rope_dim: int) -> None:
        self.plain = d - rope_dim
        self.rope_bytes = 2 * rope_dim
        self.group = max(min(FP8_GROUP, self.plain), 1)
        self.groups = -(-self.plain // self.group)
        used = self.rope_bytes + self.plain + self.groups
        self.width = -(-used // ROW_ALIGNMENT) * ROW_ALIGNMENT

    def store(self, rows: Tensor) -> Tensor:
        n = rows.shape[0]
        codes_end = self.rope_bytes + self.plain
        stored = torch.zeros(n, self.width, dtype=torch.uint8, device=rows.device)
        stored[:, : self.rope_bytes] = rows[:, self.plain :].to(torch.bfloat16).view(torch.uint8)
        grouped = rows.new_zeros(n, self.groups * self.group)
        grouped[:, : self.plain] = rows[:, : self.plain]
        grouped = grouped.view(n, self.groups, self.group)
        scales = scale_byte(grouped.abs().amax(-1).clamp_(min=FP8_SMALLEST_AMAX), FP8_LIMIT)
        codes = (grouped / scale_value(scales)[:, :, None]).to(torch.float8_e4m3fn).view(torch.uint8)
        stored[:, self.rope_bytes : codes_end] = codes.view(n, -1)[:, : self.plain]
        stored[:, codes_end : codes_end + self.groups] = scales
        return stored

    def load(self, stored: Tensor) -> Tensor:
        codes_end = self.rope_bytes + self.plain
        n = stored.shape[0]
        rope = stored[:, : self.rope_bytes].contiguous().view(torch.bfloat16).float()
        codes = stored[:, self.rope_bytes : codes_end].contiguous().view(torch.float8_e4m3fn).float()
        scales = scale_value(stored[:, codes_end : codes_end + self.groups])
        if self.plain == self.groups * self.group:
            plain = (codes.view(n, self.groups, self.group) * scales[:, :, None]).view(n, self.plain)
        else:
            plain = codes * scales.repeat_interleave(self.group, dim=1)[:, : self.plain]
        return torch.cat([plain, rope], dim=1)

    def query(self, query: Tensor) -> Tensor:
        return query


class Fp4Keys:
    """Hadamard-rotated E2M1 with power-of-two scales; `d` must be a power of two of at least 2."""

    dtype = torch.uint8

    def __init__(self, d: int, device: torch.device | None = None) -> None:
        self.rotation = hadamard.matrix(d, device)
        self.group = min(FP4_GROUP, d)
        self.codes = d // 2
        self.width = self.codes + d // self.group
        # Codes round to nearest, ties to the even code. A magnitude equal to a boundary belongs below it, so
        # a tie that goes up (0.75, 1.75, 3.5) has its boundary one float lower.
        ties_up = torch.nextafter(torch.tensor([0.75, 1.75, 3.5]), torch.tensor(0.0)).tolist()
        self.boundaries = torch.tensor(
            [0.25, ties_up[0], 1.25, ties_up[1], 2.5, ties_up[2], 5.0], device=device
        )
        magnitudes = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], device=device)
        values = torch.cat([magnitudes, -magnitudes])
        byte = torch.arange(256, device=device)
        self.pairs = torch.stack([values[byte & 15], values[byte >> 4]], dim=1)  # (256, 2)

    def store(self, rows: Tensor) -> Tensor:
        codes, scales = self._round(rows @ self.rotation)
        return torch.cat([codes[:, 0::2] | (codes[:, 1::2] << 4), scales], dim=1)

    def load(self, stored: Tensor) -> Tensor:
        n = stored.shape[0]
        values = self.pairs[stored[:, : self.codes].int()]
        scales = scale_value(stored[:, self.codes :])
        return (values.view(n, -1, self.group) * scales[:, :, None]).view(n, -1)

    def query(self, query: Tensor) -> Tensor:
        rows = query.reshape(-1, query.shape[-1])
        return self.load(self.store(rows)).view(query.shape)

    def _round(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Codes (n, d) and E8M0 scales (n, d / group), both uint8, of rotated rows."""
        n = rows.shape[0]
        grouped = rows.view(n, -1, self.group)
        scales = scale_byte(grouped.abs().amax(-1), FP4_LIMIT)
        scaled = (grouped / scale_value(scales)[:, :, None]).view(n, -1)
        codes = torch.bucketize(scaled.abs(), self.boundaries).to(torch.uint8)
        return codes | ((scaled < 0).to(torch.uint8) << 3), scales
