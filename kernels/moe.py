"""Mixture of experts: the router and the clamped SwiGLU experts.

s = sqrt(softplus(gate x)), float32; the k experts with the highest s + bias, or those of the token's table
weights = s[chosen] / sum(s[chosen]) * routed_scaling_factor
expert(x) = w2 (silu(min(w1 x, limit)) * clip(w3 x, -limit, limit) * weight)          summed in float32
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from dsv4chat.kernels.packed import Matrix, dense


def router_scores(logits: Tensor) -> Tensor:
    """sqrt(softplus(logits)), float32."""
    return torch.sqrt(F.softplus(logits.float()))


def routing_weights(scores: Tensor, chosen: Tensor, scaling: float) -> Tensor:
    """Scores (n, experts), chosen (n, k) -> weights (n, k) that sum to `scaling` in each row, float32."""
    picked = scores.gather(1, chosen)
    return picked / (picked.sum(1, keepdim=True) + 1e-20) * scaling


def swiglu(gate: Tensor, up: Tensor, limit: float) -> Tensor:
    """silu(min(gate, limit)) * clip(up, -limit, limit), elementwise."""
    return F.silu(gate.clamp(max=limit)) * up.clamp(-limit, limit)


def experts(
    x: Tensor, chosen: Tensor, weights: Tensor, gate_up: Matrix, down: Matrix, limit: float
) -> Tensor:
    """Weighted sum of the chosen experts' outputs, (n, d) float32.

    x: (n, d); chosen: (n, k) int64; weights: (n, k) float32; gate_up: (experts, 2i, d); down: (experts,
    d, i). Tokens are sorted by expert, so that each expert is one product over the tokens that chose it;
    a token's contributions are added in ascending order of expert.
    """
    n, k = chosen.shape
    order = chosen.flatten().argsort(stable=True)
    token = order // k
    weight = weights.flatten()[order]
    counts = torch.bincount(chosen.flatten(), minlength=gate_up.shape[0]).tolist()
    total = x.new_zeros(n, x.shape[1], dtype=torch.float32)
    start = 0
    for expert, count in enumerate(counts):
        if count == 0:
            continue
        rows = token[start : start + count]
        gate, up = F.linear(x[rows], dense(gate_up[expert], x.dtype)).chunk(2, dim=1)
        hidden = swiglu(gate, up, limit) * weight[start : start + count, None].to(x.dtype)
        total.index_add_(0, rows, F.linear(hidden, dense(down[expert], x.dtype)).float())
        start += count
    return total
