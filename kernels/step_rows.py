"""What follows a layer's input projections, in PyTorch: above all what a token leaves in the cache.

    row     RoPE(RMSNorm(kv)), rounded, to slot position % window of the ring
    block   kv and gate + ape[slot] to the open block; the block's row: pooled, RMSNorm, RoPE, rounded
    key     the same for the index keys
    low     RMSNorm of the low-rank query, which is handed back

A block's row is worked out from what is in the open block, and is right once its last token is in. Until
then nobody sees it, so it may be written in every step or in the last one only. What a closed block leaves
for the next one (its first channel group, with overlap) is written when it closes and `alive` holds.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4chat.kernels.compressor import pool
from dsv4chat.kernels.kv_rows import Rows
from dsv4chat.kernels.norms import rms_norm
from dsv4chat.kernels.rope import rotate_


@dataclass(frozen=True)
class BlockWeights:
    """A compressor's: ape (ratio, width), norm (d,), float32; width = 2d with overlap, else d."""

    ape: Tensor
    norm: Tensor


@dataclass(frozen=True)
class RowWeights:
    """One layer's. norm: (d,) of the token's own row, low_norm of the low-rank query; block, key: where there
    are such.
    """

    norm: Tensor
    low_norm: Tensor
    eps: float
    block: BlockWeights | None = None
    key: BlockWeights | None = None


@dataclass(frozen=True)
class OpenRows:
    """An open block: rows (2, ratio, width) float32; previous (2, ratio, d), with overlap; stored (m, bytes),
    where its closed blocks go.
    """

    rows: Tensor
    previous: Tensor | None
    stored: Tensor


@dataclass(frozen=True)
class Moment:
    """position: (1,) int64; alive: (1,) bool; rotation: (1, R / 2) complex64 at the position, and
    block_rotation at the first token of its block.
    """

    position: Tensor
    alive: Tensor
    rotation: Tensor
    block_rotation: Tensor | None = None


class CacheRows:
    """See the module. format: of rows and blocks; key_format: of index keys."""

    def __init__(self, weights: RowWeights, format: Rows, key_format: Rows) -> None:
        self.weights, self.format, self.key_format = weights, format, key_format

    def __call__(
        self,
        moment: Moment,
        low: Tensor,
        kv: Tensor,
        ring: Tensor,
        values: Tensor,
        block: tuple[Tensor, Tensor, OpenRows] | None = None,
        key: tuple[Tensor, Tensor, OpenRows] | None = None,
    ) -> Tensor:
        """low: (1, q) float32, handed back normalised; kv: (1, d) float32. Written are ring (window, width)
        and its values (window, d) float32.

        block, key: kv and gate (1, width) float32 and where they go.
        """
        w = self.weights
        row = rotate_(rms_norm(kv, w.norm, w.eps), moment.rotation)
        slot = moment.position % ring.shape[0]
        stored = self.format.store(row)
        ring.index_copy_(0, slot, stored)
        if values.data_ptr() != ring.data_ptr():
            values.index_copy_(0, slot, self.format.load(stored))
        if block is not None and w.block is not None:
            self._advance(moment, w.block, self.format, *block)
        if key is not None and w.key is not None:
            self._advance(moment, w.key, self.key_format, *key)
        return rms_norm(low, w.low_norm, w.eps)

    def _advance(
        self, moment: Moment, weights: BlockWeights, format: Rows, kv: Tensor, gate: Tensor, open: OpenRows
    ) -> None:
        assert moment.block_rotation is not None
        ratio, previous = weights.ape.shape[0], open.previous
        slot = moment.position % ratio
        new = torch.stack([kv, gate + weights.ape.index_select(0, slot)])
        open.rows.index_copy_(1, slot, new)
        pooled = open.rows
        if previous is not None:
            d = previous.shape[2]
            pooled = torch.cat([previous, open.rows[:, :, d:]], 1)
            closes = (slot == ratio - 1) & moment.alive
            previous.copy_(torch.where(closes, open.rows[:, :, :d], previous))
        row = rms_norm(pool(pooled[:1], pooled[1:]), weights.norm, self.weights.eps)
        row = rotate_(row, moment.block_rotation)
        open.stored.index_copy_(0, moment.position // ratio, format.store(row))
