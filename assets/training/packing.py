"""Packing documents into rows of one length, with what attention must know of their bounds.

A document starts at a multiple of 4 (the CSA ratio), so that its 4-token blocks are the row's; the gap
before the next document is padding that belongs to the document before it and is never a target.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ALIGNMENT = 4
LONG_BLOCK = 128


@dataclass(frozen=True)
class Batch:
    """A batch of packed rows.

    ids (B, T) int64; targets (B, T) int64: the next token of the same document; weights (B, T) f32: 0 where
    there is no target or it does not count; start (B, T) int32: row index of the first token of each
    token's document; block_start (B, T / 128) int32: where each whole block of 128 tokens begins, T for
    unused entries.
    """

    ids: Tensor
    targets: Tensor
    weights: Tensor
    start: Tensor
    block_start: Tensor

    def to(self, device: torch.device) -> "Batch":
        """The same batch on `device`; copies from pinned memory do not block."""
        return Batch(*(getattr(self, f.name).to(device, non_blocking=True) for f in fields(self)))

    def pin(self) -> "Batch":
        """The same batch in pinned memory."""
        return Batch(*(getattr(self, f.name).pin_memory() for f in fields(self)))


@dataclass(frozen=True)
class Documents:
    """Documents of token ids back to back.

    mask: 1 where a token counts as a target (None: every one does); the others weigh `rest`.
    """

    ids: NDArray[np.integer]
    offsets: NDArray[np.integer]
    mask: NDArray[np.integer] | None = None
    rest: float = 0.0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def lengths(self) -> NDArray[np.int64]:
        """Number of tokens of each document."""
        return np.diff(self.offsets.astype(np.int64))


def pack(
    lengths: NDArray[np.int64], order: Sequence[int] | NDArray[np.int64], row_length: int
) -> list[list[int]]:
    """Rows of document numbers, in random order's spirit: each document goes to the fullest of the open
    rows it fits in (64 are open at a time), so rows fill without sorting by length.
    """
    rows: list[list[int]] = []
    open_rows: list[tuple[int, list[int]]] = []
    for document in order:
        need = min(_aligned(int(lengths[document])), row_length)
        fits = [(room, i) for i, (room, _) in enumerate(open_rows) if room >= need]
        if fits:
            room, i = min(fits)
            open_rows[i][1].append(int(document))
            open_rows[i] = (room - need, open_rows[i][1])
        else:
            if len(open_rows) == 64:
                fullest = min(range(64), key=lambda k: open_rows[k][0])
                rows.append(open_rows.pop(fullest)[1])
            open_rows.append((row_length - need, [int(document)]))
    return rows + [row for _, row in open_rows]


def build(documents: Documents, rows: Sequence[Sequence[int]], row_length: int, *, padding: int) -> Batch:
    """The batch of `rows` (lists of document numbers). A document longer than a row is cut at the row's
    end.
    """
    shape = (len(rows), row_length)
    ids = np.full(shape, padding, np.int64)
    targets, weights = np.full(shape, padding, np.int64), np.zeros(shape, np.float32)
    start = np.zeros(shape, np.int32)
    blocks = np.full((len(rows), max(row_length // LONG_BLOCK, 1)), row_length, np.int32)
    for r, row in enumerate(rows):
        at, used = 0, 0
        for document in row:
            first, last = int(documents.offsets[document]), int(documents.offsets[document + 1])
            size = min(last - first, row_length - at)
            text = documents.ids[first : first + size]
            ids[r, at : at + size] = text
            targets[r, at : at + size - 1] = text[1:]
            counted = 1.0
            if documents.mask is not None:
                counted = np.where(documents.mask[first + 1 : first + size] != 0, 1.0, documents.rest)
            weights[r, at : at + size - 1] = counted
            end = min(at + _aligned(size), row_length)
            start[r, at:end] = at
            whole = size // LONG_BLOCK
            blocks[r, used : used + whole] = at + LONG_BLOCK * np.arange(whole)
            at, used = end, used + whole
        start[r, at:] = at
    return Batch(*(torch.from_numpy(a) for a in (ids, targets, weights, start, blocks)))


def shuffled_rows(
    documents: Documents, row_length: int, generator: np.random.Generator
) -> Iterator[list[int]]:
    """Packed rows without end: each pass over the documents is shuffled and packed anew."""
    lengths = documents.lengths()
    while True:
        rows = pack(lengths, generator.permutation(len(documents)), row_length)
        generator.shuffle(rows)
        yield from rows


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
