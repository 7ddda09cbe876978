"""The Hadamard rotation of index queries and keys: an orthogonal matrix of +-d^-0.5 (Sylvester's
construction).

It spreads an outlier over all channels, so that four bits hold the rotated vector. Rotating both sides of a
product changes nothing: (q H) . (k H) = q . k.
"""

import torch
from torch import Tensor


def matrix(d: int, device: torch.device | None = None) -> Tensor:
    """The symmetric (d, d) float32 matrix, scaled by d^-0.5. Raises ValueError unless d is a power of two."""
    if d < 1 or d & (d - 1):
        raise ValueError(f"A Hadamard matrix needs a power of two, not {d}.")
    result = torch.ones(1, 1, dtype=torch.float32)
    while result.shape[0] < d:
        result = torch.cat([torch.cat([result, result], 1), torch.cat([result, -result], 1)])
    return torch.mul(result, d**-0.5).to(device)
