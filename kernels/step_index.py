"""Which blocks a token attends to in compressed sparse attention, in PyTorch.

    score(b) = sum_h w_h relu(q_h . k_b) * scale        the `picks` highest, of equals the lowest b

q is turned (RoPE) and rounded as the keys are; the visible blocks are the first (position + 1) // ratio.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4chat.kernels.kv_rows import Rows
from dsv4chat.kernels.rope import rotate_
from dsv4chat.kernels.topk import top_k


@dataclass(frozen=True)
class IndexSizes:
    """heads x d queries; picks of the blocks of `ratio` tokens; scale of the scores."""

    heads: int
    d: int
    picks: int
    ratio: int
    scale: float


class Index:
    """See the module."""

    def __init__(self, sizes: IndexSizes, format: Rows) -> None:
        self.sizes, self.format = sizes, format

    def __call__(
        self, query: Tensor, weights: Tensor, rotation: Tensor, position: Tensor, keys: Tensor
    ) -> Tensor:
        """(picks,) int64, in any order. Where fewer are visible, the rest are blocks that are not.

        query: (1, heads * d) float32, before rotation; weights: (1, heads) float32; rotation: (1, R / 2)
        complex64; position: (1,) int64; keys: (m, width) stored rows, m more than picks.
        """
        s = self.sizes
        turned = rotate_(query.reshape(1, s.heads, s.d).float(), rotation)
        rounded = self.format.query(turned)[0]
        match = torch.relu(rounded @ self.format.load(keys).t())
        block = torch.arange(keys.shape[0], device=keys.device)
        scores = (weights * s.scale) @ match
        scores = torch.where(block < (position + 1) // s.ratio, scores, -torch.inf)
        return top_k(scores, s.picks)[0]
