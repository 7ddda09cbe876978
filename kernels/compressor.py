"""Pooling of several tokens' key-value rows into one, weighted by a softmax per channel.

    pooled[c] = sum_r softmax_r(gate[r, c]) kv[r, c]            over the rows r of a block, float32

Heavily compressed attention pools the rows of one block. Compressed sparse attention has two channel
groups of width d: block b pools the first group of block b - 1 and the second group of its own rows, 2 *
ratio rows.
"""

import torch
from torch import Tensor


def pool(kv: Tensor, gate: Tensor) -> Tensor:
    """(m, rows, d) float32, gates alike -> (m, d)."""
    return (torch.softmax(gate, dim=1) * kv).sum(1)


def overlapped(blocks: Tensor, previous: Tensor) -> Tensor:
    """Rows each block pools in compressed sparse attention.

    blocks: (m, ratio, 2d), m consecutive blocks; previous: (ratio, d), the first group of the block
    before them. Returns (m, 2 * ratio, d).
    """
    d = blocks.shape[2] // 2
    before = torch.cat([previous[None], blocks[:-1, :, :d]])
    return torch.cat([before, blocks[:, :, d:]], dim=1)
