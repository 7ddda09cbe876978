"""The lightning indexer of compressed sparse attention: which blocks a query attends to.

    score(p, b) = sum_h w_h relu(q_h . k_b),    w = weights_proj(x) * index_head_dim^-0.5 * index_heads^-0.5

q comes from the normalised low-rank query, rotated on its last channels; k is the row of the indexer's own
compressor, one a block. The min(index_topk, visible) highest are taken, exactly, ties to the lowest block.
"""

import torch
from torch import Tensor

from dsv4chat.kernels.topk import top_k
from dsv4chat.runtime.compressor import Compressor
from dsv4chat.runtime.layer_cache import BlockRows

SCORES_AT_ONCE = 1 << 22  # elements of (queries, heads, blocks) held at a time


class Indexer:
    """Sizes, the key compressor, and the selection. Its matrices stand in the attention's stacked
    projections.
    """

    def __init__(self, heads: int, head_dim: int, topk: int, compressor: Compressor) -> None:
        self.heads = heads
        self.head_dim = head_dim
        self.topk = topk
        self.scale = head_dim**-0.5 * heads**-0.5
        self.compressor = compressor

    def scores(self, query: Tensor, weights: Tensor, keys: Tensor) -> Tensor:
        """query (t, heads, d), weights (t, heads), keys (b, d), all float32 -> (t, b) float32."""
        t = query.shape[0]
        parts = []
        size = max(1, SCORES_AT_ONCE // (self.heads * keys.shape[0]))
        for first in range(0, t, size):
            q = query[first : first + size]
            match = torch.relu(q.reshape(-1, self.head_dim) @ keys.t()).view(q.shape[0], self.heads, -1)
            w = weights[first : first + size, None, :] * self.scale
            parts.append(torch.bmm(w, match)[:, 0])
        return torch.cat(parts) if len(parts) > 1 else parts[0]

    def select(self, query: Tensor, weights: Tensor, keys: BlockRows, visible: Tensor, most: int) -> Tensor:
        """Chosen blocks of each query, ascending: (t, min(topk, most)) int64.

        visible: (t,), blocks each query may see, at most `most`. Where fewer than the width are visible, the
        entries not below `visible` are to be masked.
        """
        rounded = keys.format.query(query)
        scores = self.scores(rounded, weights, keys.load(most))
        block = torch.arange(most, device=scores.device)
        scores.masked_fill_(block >= visible[:, None], -torch.inf)
        return top_k(scores, min(self.topk, most))
