"""Codes of eight rows side by side, 128 bytes of each at a time: what a warp's copies want to find together.

    (rows / 8, 8 rows, units, 128 bytes) -> (rows / 8, units, 8 rows, 128 bytes)

A matrix in rows makes a warp jump from row to row every 128 bytes, which memory serves more slowly.
"""

import torch
from torch import Tensor

ROWS, BYTES = 8, 128
CHUNK = 1 << 27  # bytes worked on at once


def groupable(codes: Tensor) -> bool:
    """Whether a matrix (..., rows, columns) of one-byte codes has whole groups and units."""
    return codes.element_size() == 1 and codes.shape[-2] % ROWS == 0 and codes.shape[-1] % BYTES == 0


def group_(codes: Tensor) -> Tensor:
    """Codes (..., rows, bytes), `groupable` and contiguous -> in that order, in place."""
    _exchange(codes.view(torch.uint8), ROWS, codes.shape[-1] // BYTES)
    return codes


def ungrouped(codes: Tensor) -> Tensor:
    """A copy in rows again."""
    copy = codes.contiguous().clone()
    _exchange(copy.view(torch.uint8), copy.shape[-1] // BYTES, ROWS)
    return copy


def grouped_scales(quads: Tensor) -> Tensor:
    """Scales u8 (..., rows, units * 16), 16 of a row and unit -> the same order, in the same shape."""
    groups = quads.view(*quads.shape[:-2], -1, ROWS, quads.shape[-1] // 16, 16)
    return groups.transpose(-2, -3).reshape(quads.shape)


def _exchange(raw: Tensor, first: int, second: int) -> None:
    """Every (first, second, BYTES) of `raw` becomes (second, first, BYTES)."""
    groups = raw.view(-1, first, second, BYTES)
    step = max(1, CHUNK // (first * second * BYTES))
    for start in range(0, groups.shape[0], step):
        part = groups[start : start + step]
        exchanged = part.transpose(1, 2).clone(memory_format=torch.contiguous_format)
        part.view(-1, second, first, BYTES).copy_(exchanged)
        del exchanged  # before the next is made
