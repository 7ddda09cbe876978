"""Hyper-connections (mHC): four residual streams, mixed before and after every sublayer.

X: (B, T, n, hidden). All mixing arithmetic is f32; X and the sublayer's input keep X's dtype.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from dsv4chat.assets.training.sinkhorn import sinkhorn
from dsv4chat.runtime.config import ModelConfig


def rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """x (..., D) over its root mean square, times weight (D); f32 inside, one cast at the end."""
    wide = x.float()
    wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (wide if weight is None else wide * weight.float()).to(x.dtype)


def mix(x: Tensor, fn: Tensor, eps: float) -> Tensor:
    """The streams' own mixing values: (B, T, n, hidden) with fn (m, n*hidden) to (B, T, m) f32."""
    flat = x.flatten(2).float()
    return F.linear(flat, fn) * torch.rsqrt(flat.square().mean(-1, keepdim=True) + eps)


def collapse(x: Tensor, pre: Tensor) -> Tensor:
    """sum_i pre_i X_i: (B, T, hidden), in X's dtype."""
    return (pre.unsqueeze(-1) * x.float()).sum(2).to(x.dtype)


def connect(
    x: Tensor, fn: Tensor, base: Tensor, scale: Tensor, config: ModelConfig
) -> tuple[Tensor, Tensor, Tensor]:
    """Sublayer input (B, T, hidden), post (B, T, n) and comb (B, T, n, n) of X; the latter two f32."""
    n = config.hc_mult
    values = mix(x, fn, config.norm_eps)
    pre = torch.sigmoid(values[..., :n] * scale[0] + base[:n]) + config.hc_eps
    post = 2 * torch.sigmoid(values[..., n : 2 * n] * scale[1] + base[n : 2 * n])
    logits = (values[..., 2 * n :] * scale[2] + base[2 * n :]).reshape(-1, n * n)
    comb = sinkhorn(logits, config.sinkhorn_rounds, config.hc_eps).view(*x.shape[:2], n, n)
    return collapse(x, pre), post, comb


def reconnect(x: Tensor, out: Tensor, post: Tensor, comb: Tensor) -> Tensor:
    """X'_j = post_j * out + sum_i comb[i, j] * X_i, in X's dtype."""
    wide = x.float()
    added = post.unsqueeze(-1) * out.float().unsqueeze(2)
    kept = (comb.unsqueeze(-1) * wide.unsqueeze(3)).sum(2)
    return (added + kept).to(x.dtype)


def head(x: Tensor, fn: Tensor, base: Tensor, scale: Tensor, config: ModelConfig) -> Tensor:
    """The last collapse of the streams, before the final norm: (B, T, hidden)."""
    pre = torch.sigmoid(mix(x, fn, config.norm_eps) * scale + base) + config.hc_eps
    return collapse(x, pre)
