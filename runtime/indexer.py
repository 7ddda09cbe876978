"""The lightning indexer of compressed sparse attention: which blocks a query attends to.

    score(p, b) = sum_h w_h relu(q_h . k_b),    w = weights_proj(x) * index_head_dim^-0.5 * index_heads^-0.5

q comes from the normalised low-rank query, rotated on its last channels; k is the row of the indexer's own
compressor, one a block. The min(index_topk, visible) highest are taken, exactly, ties to the lowest block.
"""

import torch
from torch import Tensor

from dsv4chat.runtime.compressor import Compressor
from dsv4chat.runtime.layer_cache import BlockRows

SCORES_AT_ONCE = 1 << 22  # elements of (queries, heads, blocks) held at a time


class Indexer:
    """Sizes, the key compressor, and the scores. Its matrices stand in the attention's stacked
    projections.
    """

    def __init__(self, heads: int, head_dim: int, topk: int, compressor: Compressor) -> None:
        self.heads = heads
        self.head_dim = head_dim
        self.topk = topk
        self.scale = head_dim**-0.5 * heads**-0.5
        self.compressor = compressor

    def scores(self, query: Tensor, weights: Tensor, keys: BlockRows, visible: Tensor, most: int) -> Tensor:
        """What ranks the first `most` blocks for each query: (t, most) float32, -inf from `visible` on.

        query: (t, heads, d), rotated; weights: (t, heads); visible: (t,), blocks each query may see.
        """
        query = keys.format.query(query)
        rows = keys.load(most).t()
        parts = []
        size = max(1, SCORES_AT_ONCE // (self.heads * most))
        for first in range(0, query.shape[0], size):
            q = query[first : first + size]
            match = torch.relu(q.reshape(-1, self.head_dim) @ rows).view(q.shape[0], self.heads, -1)
            w = weights[first : first + size, None, :] * self.scale
            parts.append(torch.bmm(w, match)[:, 0])
        scores = torch.cat(parts) if len(parts) > 1 else parts[0]
        block = torch.arange(most, device=scores.device)
        return scores.masked_fill_(block >= visible[:, None], -torch.inf)
