"""The operations of a decode step that have kernels of their own, in PyTorch: what they compute, on any
device.

Each is made once from the weights it will use and is then called with activations of 1 to 8 rows.
`kernels.cute` has the same with the same names; take them from `kernels.cute.operations`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from dsv4chat.kernels.linear import products
from dsv4chat.kernels.moe import swiglu
from dsv4chat.kernels.packed import Packed


class Linear:
    """Matrices with the same input, one below the other: out = x W^T, float32."""

    def __init__(self, parts: Sequence[Packed]) -> None:
        self.parts = list(parts)
        self.rows = sum(part.shape[0] for part in parts)

    def __call__(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """x (n, columns) -> (n, rows) float32, in `out` when given."""
        out = x.new_empty((x.shape[0], self.rows), dtype=torch.float32) if out is None else out
        start = 0
        for part in self.parts:
            rows = part.shape[0]
            out[:, start : start + rows] = part.multiply(x)
            start += rows
        return out


class Grouped:
    """Block-diagonal: matrix g of (groups, rows, columns) takes the g-th part of x."""

    def __init__(self, packed: Packed) -> None:
        self.packed = packed

    def __call__(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """x (n, groups * columns) -> (n, groups * rows) float32."""
        groups, rows, columns = self.packed.shape
        values = self.packed.values(x.dtype)
        results = [products(row.view(groups, columns), values) for row in x]
        result = torch.stack(results)
        if self.packed.row_factor is not None:
            result *= self.packed.row_factor
        result = result.view(x.shape[0], groups * rows)
        return result if out is None else out.copy_(result)


class Experts:
    """Clamped SwiGLU experts, chosen on the device.

    gate_up: (experts, 2 * inner, d), w1 above w3; down: (experts, d, inner). Without a leading axis it is one
    expert that every row uses: the shared one.
    """

    def __init__(self, gate_up: Packed, down: Packed, limit: float) -> None:
        self.gate_up, self.down, self.limit = gate_up, down, limit

    def __call__(
        self,
        x: Tensor,
        ids: Tensor | None = None,
        weights: Tensor | None = None,
        add: Tensor | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """add + sum over picks of w2 (silu(min(w1 x, limit)) * clip(w3 x) * weight): (n, d) float32.

        x (n, d); ids (n, picks) int32 and weights (n, picks) float32, both None for a shared expert; add
        (n, d) float32 or None.
        """
        rows = []
        for number, row in enumerate(x.split(1)):
            if ids is None:
                gate, up = self.gate_up.multiply(row).chunk(2, dim=1)
                hidden = swiglu(gate, up, self.limit)
                rows.append(self.down.multiply(hidden.to(x.dtype)))
            else:
                chosen = ids[number].long()
                gate, up = self.gate_up[chosen].multiply_each(row).chunk(2, dim=1)
                hidden = swiglu(gate, up, self.limit)
                if weights is not None:
                    hidden = hidden * weights[number][:, None]
                rows.append(self.down[chosen].multiply_each(hidden.to(x.dtype)).sum(0, keepdim=True))
        result = torch.cat(rows)
        if add is not None:
            result = result + add
        return result if out is None else out.copy_(result)
