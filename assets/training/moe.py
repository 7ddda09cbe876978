"""Mixture of experts, computed densely: every token runs through every expert, unchosen ones weigh zero.

With 16 small experts one large matrix product beats sorting tokens. The shared expert is the last of the
stack.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from dsv4chat.runtime.config import ModelConfig


def route_by_score(scores: Tensor, bias: Tensor, count: int) -> Tensor:
    """Which experts (N, E) bool hold the `count` highest of scores + bias, ties to the lower index."""
    value = (scores + bias).detach()
    mine, other = value.unsqueeze(-1), value.unsqueeze(-2)
    index = torch.arange(value.shape[-1], device=value.device)
    ahead = (other > mine) | ((other == mine) & (index < index.unsqueeze(-1)))
    return ahead.sum(-1) < count


def route(x: Tensor, gate: Tensor, chosen: Tensor | None, bias: Tensor | None, config: ModelConfig):
    """Weights (N, E) f32, zero for experts not taken, and the choice (N, E) bool.

    x (N, hidden); gate (E, hidden). `chosen` is the hash layer's table row of each token, else `bias` (E)
    f32.
    """
    scores = F.softplus(F.linear(x.float(), gate.float())).sqrt()
    taken = route_by_score(scores, bias, config.experts_per_token) if chosen is None else chosen
    kept = torch.where(taken, scores, 0.0)
    return kept / kept.sum(-1, keepdim=True) * config.routed_scaling_factor, taken


def experts(x: Tensor, weights: Tensor, w13: Tensor, w2: Tensor, limit: float) -> Tensor:
    """Sum over experts of w2 (silu(min(w1 x, limit)) * clip(w3 x) * weight); the last expert is shared.

    x (N, hidden), weights (N, E) f32, w13 (2, E + 1, inner, hidden), w2 (E + 1, hidden, inner).
    """
    count, hidden, inner = w2.shape
    both = F.linear(x, w13.reshape(-1, hidden)).view(-1, 2, count, inner)
    gate, up = both[:, 0].float().clamp(max=limit), both[:, 1].float().clamp(-limit, limit)
    each = torch.cat((weights, torch.ones_like(weights[:, :1])), dim=-1)
    inside = (F.silu(gate) * up * each.unsqueeze(-1)).to(x.dtype)
    return F.linear(inside.flatten(1), w2.transpose(0, 1).reshape(hidden, -1))
