"""Attention with one key-value head shared by all query heads and a learned sink per head.

Keys and values are the same rows. The sink is one more score per head that takes part in the softmax but
carries no value:

    out = sum_r exp(q . k_r - m) k_r / (sum_r exp(q . k_r - m) + exp(sink - m))

It is computed as a zero row appended to the keys, whose score is replaced by the sink: the row adds
exp(sink - m) to the denominator and nothing to the sum. Everything here is float32.
"""

import torch
from torch import Tensor


def with_sink_row(*parts: Tensor) -> Tensor:
    """Rows of all parts, (r_i, d) each, then the zero row of the sink: (sum r_i + 1, d)."""
    return torch.cat([*parts, parts[0].new_zeros(1, parts[0].shape[1])])


def dense(query: Tensor, rows: Tensor, mask: Tensor, sink: Tensor) -> Tensor:
    """Every query sees the same rows, save what the mask hides.

    query: (t, h, d), already multiplied by the softmax scale; rows: (r + 1, d) from `with_sink_row`;
    mask: (t, r + 1) of 0 and -inf, last column 0; sink: (h,). Returns (t, h, d).
    """
    t, h, d = query.shape
    scores = (query.reshape(t * h, d) @ rows.t()).view(t, h, -1)
    scores[:, :, -1] = sink
    scores += mask[:, None, :]
    return (torch.softmax(scores, dim=-1).view(t * h, -1) @ rows).view(t, h, d)


def selected(
    query: Tensor, rows: Tensor, mask: Tensor, sink: Tensor, chosen: Tensor, chosen_mask: Tensor
) -> Tensor:
    """Besides the shared rows each query sees k rows of its own.

    As `dense`; chosen: (t, k, d), chosen_mask: (t, k) of 0 and -inf. Returns (t, h, d).
    """
    t, h, d = query.shape
    shared = (query.reshape(t * h, d) @ rows.t()).view(t, h, -1)
    shared[:, :, -1] = sink
    shared += mask[:, None, :]
    own = torch.bmm(query, chosen.transpose(1, 2)) + chosen_mask[:, None, :]
    weights = torch.softmax(torch.cat([shared, own], dim=-1), dim=-1)
    r = rows.shape[0]
    out = (weights[:, :, :r].reshape(t * h, r) @ rows).view(t, h, d)
    return out.baddbmm(weights[:, :, r:], chosen)
