"""The indexer of CSA layers: scores for every block, the choice of the best, and what it is trained on.

Its inputs are detached: the indexer learns only to predict where the attention's own mass goes
(KL divergence), and the rest of the model is not bent towards it.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from dsv4chat.runtime.config import ModelConfig


def scores(q: Tensor, keys: Tensor, weights: Tensor, config: ModelConfig) -> Tensor:
    """score(p, b) = sum_h w_h relu(q_h . k_b): (B, T, S) f32 of q (B, T, H, D), keys (B, S, D), weights (B,
    T, H).
    """
    b, t, heads, d = q.shape
    products = (q.reshape(b, t * heads, d) @ keys.transpose(1, 2)).view(b, t, heads, -1)
    scale = (config.index_head_dim * config.index_heads) ** -0.5
    return (products.float().relu() * (weights.float() * scale).unsqueeze(-1)).sum(2)


def choose(score: Tensor, visible: Tensor, count: int) -> Tensor:
    """(B, T, S) bool: the `count` visible blocks with the highest scores; all of them where fewer are
    visible.
    """
    count = min(count, score.shape[-1])
    best = score.detach().masked_fill(~visible, float("-inf")).topk(count, dim=-1).indices
    chosen = torch.zeros_like(visible).scatter(-1, best, True)
    return chosen & visible


def divergence(score: Tensor, share: Tensor, visible: Tensor) -> Tensor:
    """Mean over queries that see a block of the cross-entropy between the attention's share (B, T, S) of each
    visible block and softmax(score) over the visible blocks. A scalar.
    """
    log_chance = score.masked_fill(~visible, -1e9).log_softmax(-1)  # finite: a query may see no block at all
    target = share.detach() / share.detach().sum(-1, keepdim=True).clamp(min=1e-20)
    terms = torch.where(visible, target * log_chance, 0.0).sum(-1)
    seeing = visible.any(-1)
    return -torch.where(seeing, terms, 0.0).sum() / seeing.sum().clamp(min=1)


def index_queries(qr: Tensor, wq_b: Tensor, config: ModelConfig) -> Tensor:
    """Index query heads (B, T, H, D) of the normalised low-rank query, not rotated yet."""
    return F.linear(qr, wq_b).unflatten(-1, (config.index_heads, config.index_head_dim))
