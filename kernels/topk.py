"""Exact top-k whose ties go to the lowest index.

`torch.topk` leaves open which of several equal values it returns. Here the k-th highest value is a threshold:
everything above it is taken, and of what equals it the entries of lowest index, until k are taken.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


def top_k(scores: Tensor, k: int) -> Tensor:
    """Indices of the k highest of each row, in ascending order of index: (n, m) -> (n, k) int64, k <= m.

    NaN counts as the lowest value, so that a damaged row still gives valid indices.
    """
    rows, columns = scores.shape
    if k == columns:
        return torch.arange(columns, device=scores.device).expand(rows, columns)
    scores = torch.nan_to_num(scores, nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)
    threshold = scores.topk(k, dim=1, sorted=False).values.amin(1, keepdim=True)
    above = scores > threshold
    equal = scores == threshold
    missing = k - above.sum(1, keepdim=True)
    taken = above | (equal & (equal.cumsum(1) <= missing))
    # The n-th that is taken goes to place n, the others to a place that is cut off: nothing here depends on
    # the data's shape, so that a GPU needs not wait.
    place = torch.where(taken, taken.cumsum(1) - 1, k)
    index = torch.arange(columns, device=scores.device).expand(rows, columns)
    return index.new_empty(rows, k + 1).scatter_(1, place, index)[:, :k]


def highest(scores: npt.NDArray[np.float32], k: int) -> npt.NDArray[np.int64]:
    """`top_k` of one row on the CPU, with fewer calls: the k highest of scores (m,), k < m, ascending."""
    threshold = np.partition(scores, scores.size - k)[scores.size - k]
    above = np.flatnonzero(scores > threshold)
    equal = np.flatnonzero(scores == threshold)[: k - above.size]
    return np.sort(np.concatenate((above, equal)))
