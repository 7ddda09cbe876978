"""The compressor: every `ratio` tokens become one key-value row.

kv = x Wkv, gate = x Wgate + ape[t mod ratio]; a block is pooled by a softmax of its gates per channel,
normalised, and rotated as of the position of its first token. Heavily compressed attention (HCA) pools
the block's own rows; compressed sparse attention (CSA, `overlap`) projects to two channel groups and
pools the first group of the block before together with the second of its own. All float32. The rows of an
unfinished block stay in `OpenBlock`, so that any split of the input gives the same rows.
"""

import torch
from torch import Tensor

from dsv4chat.kernels.compressor import overlapped, pool
from dsv4chat.kernels.norms import rms_norm
from dsv4chat.kernels.rope import rotate_
from dsv4chat.runtime.layer_cache import OpenBlock
from dsv4chat.runtime.step import Step


class Compressor:
    """Weights of one compressor; ape (ratio, width), norm (d,); width = 2d with `overlap`, else d."""

    def __init__(self, ratio: int, overlap: bool, ape: Tensor, norm: Tensor, eps: float) -> None:
        self.ratio = ratio
        self.overlap = overlap
        self.ape = ape
        self.norm = norm
        self.eps = eps

    def advance(self, kv: Tensor, gate: Tensor, open_block: OpenBlock, step: Step) -> Tensor | None:
        """Take in kv and gate (n, width) of this pass; returns the rows of the blocks it closes, (m, d), or
        None.
        """
        ratio = self.ratio
        used = step.position % ratio
        slots = torch.arange(step.position, step.position + step.count, device=kv.device) % ratio
        new = torch.stack([kv, gate + self.ape.index_select(0, slots)])
        closed = (used + step.count) // ratio
        if not closed:
            open_block.rows[:, used : used + step.count] = new
            return None
        rows = torch.cat([open_block.rows[:, :used], new], dim=1)
        rest = rows[:, closed * ratio :]
        open_block.rows[:, : rest.shape[1]] = rest
        blocks = rows[:, : closed * ratio].view(2, closed, ratio, -1)
        pooled = pool(*self._pooled_rows(blocks, open_block))
        return rotate_(rms_norm(pooled, self.norm, self.eps), step.block_rotations(ratio))

    def _pooled_rows(self, blocks: Tensor, open_block: OpenBlock) -> tuple[Tensor, Tensor]:
        """The kv and gate rows each block pools, (m, rows, d) each, from (2, m, ratio, width)."""
        previous = open_block.previous
        if previous is None:
            return blocks[0], blocks[1]
        kv, gate = (overlapped(blocks[i], previous[i]) for i in (0, 1))
        previous.copy_(blocks[:, -1, :, : previous.shape[2]])
        return kv, gate
