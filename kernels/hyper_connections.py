"""Manifold-constrained hyper-connections (mHC): how the residual streams enter and leave a sublayer.

X is (n, s, d): s streams a token. Formulae of the DeepSeek-V4 paper, section 2.2:

    mix  = (flat(X) fn^T) * rsqrt(mean(flat(X)^2) + norm_eps)                        (n, (2 + s) s), float32
    pre  = sigmoid(mix[:s] scale_0 + base[:s]) + eps
    post = 2 sigmoid(mix[s:2s] scale_1 + base[s:2s])
    comb = Sinkhorn(softmax over columns of (mix[2s:] scale_2 + base[2s:]).view(s, s) + eps)
    input of the sublayer = sum_i pre_i X_i        X'_j = post_j F + sum_i comb[i, j] X_i
"""

import torch
from torch import Tensor

from dsv4chat.kernels.norms import inverse_rms


def mixes(streams: Tensor, fn: Tensor, norm_eps: float) -> Tensor:
    """Projection of the normalised flat streams: (n, s, d), (m, s * d) float32 -> (n, m) float32."""
    flat = streams.flatten(1).float()
    return (flat @ fn.t()) * inverse_rms(flat, norm_eps)


def sinkhorn(logits: Tensor, eps: float, rounds: int) -> Tensor:
    """Softmax of each row, then `rounds` times columns (first alone) and rows divided by their sums.

    logits: (n, s, s) float32 -> (n, s, s) float32 whose columns sum to 1 and rows nearly. Worked on as
    (s, s, n), so that each of the many small sums runs along contiguous tokens.
    """
    comb = (torch.softmax(logits, dim=-1) + eps).permute(1, 2, 0).contiguous()
    comb /= comb.sum(0, keepdim=True) + eps
    for _ in range(rounds - 1):
        comb /= comb.sum(1, keepdim=True) + eps
        comb /= comb.sum(0, keepdim=True) + eps
    return comb.permute(2, 0, 1)


def weights(
    mix: Tensor, scale: Tensor, base: Tensor, streams: int, eps: float, rounds: int
) -> tuple[Tensor, Tensor, Tensor]:
    """pre (n, s), post (n, s), comb (n, s, s) from the mixes (n, (2 + s) s); scale (3,), base like mix."""
    s = streams
    pre = torch.sigmoid(mix[:, :s] * scale[0] + base[:s]) + eps
    post = 2 * torch.sigmoid(mix[:, s : 2 * s] * scale[1] + base[s : 2 * s])
    logits = (mix[:, 2 * s :] * scale[2] + base[2 * s :]).view(-1, s, s)
    comb = sinkhorn(logits, eps, rounds)
    return pre, post, comb


def collapse(streams: Tensor, pre: Tensor) -> Tensor:
    """sum_i pre_i X_i: (n, s, d), (n, s) -> (n, d), float32 arithmetic, in the type of the streams."""
    return torch.bmm(pre[:, None, :], streams.float())[:, 0].to(streams.dtype)


def expand(streams: Tensor, post: Tensor, comb: Tensor, output: Tensor) -> Tensor:
    """X'_j = post_j F + sum_i comb[i, j] X_i: (n, s, d), F (n, d) -> (n, s, d), type of the streams."""
    added = post[:, :, None] * output.float()[:, None, :]
    # Contiguous, or the CPU multiplies the small matrices one by one.
    return added.baddbmm_(comb.transpose(1, 2).contiguous(), streams.float().contiguous()).to(streams.dtype)


def head(streams: Tensor, fn: Tensor, scale: Tensor, base: Tensor, norm_eps: float, eps: float) -> Tensor:
    """The streams merged at the end of the model: (n, s, d) -> (n, d); fn (s, s * d), scale (1,), base
    (s,).
    """
    pre = torch.sigmoid(mixes(streams, fn, norm_eps) * scale + base) + eps
    return collapse(streams, pre)
