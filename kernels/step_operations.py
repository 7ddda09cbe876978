"""The operations of a decode step that have kernels of their own, in PyTorch: what they compute, on any
device.

Each is made once from the weights it will use and is then called with activations of 1 to 8 rows.
`kernels.cute` has the same with the same names; take them from `kernels.cute.operations`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4chat.kernels import attention
from dsv4chat.kernels import hyper_connections as mhc
from dsv4chat.kernels.kv_rows import Rows
from dsv4chat.kernels.linear import products
from dsv4chat.kernels.moe import router_scores, routing_weights, swiglu
from dsv4chat.kernels.norms import inverse_rms, rms_norm
from dsv4chat.kernels.packed import Packed
from dsv4chat.kernels.rope import rotate_
from dsv4chat.kernels.topk import top_k


class Linear:
    """Matrices with the same input, one below the other: out = x W^T, float32.

    settles: whether a call with `settle` lets the operation after it rely on all that came before it.
    takes_halves: whether x is best given as float16.
    """

    settles = False
    takes_halves = False

    def __init__(self, parts: Sequence[Packed]) -> None:
        self.parts = list(parts)
        self.rows = sum(part.shape[0] for part in parts)

    def __call__(
        self,
        x: Tensor,
        out: Tensor | None = None,
        ahead: Sequence[Tensor] = (),
        settle: bool = False,
        parts: bool = False,
    ) -> Tensor:
        """x (n, columns) -> (n, rows) float32, in `out` when given.

        ahead: what a later operation reads; a kernel may fetch it into the cache, as far as it lies in two
        runs of memory. parts: of one row the result may come as two, to be added up.
        """
        out = x.new_empty((x.shape[0], self.rows), dtype=torch.float32) if out is None else out
        start = 0
        for part in self.parts:
            rows = part.shape[0]
            out[:, start : start + rows] = part.multiply(x)
            start += rows
        return out

    def first(self, rows: int) -> "Linear":
        """The first rows, in the same memory; perhaps some more."""
        return self if len(self.parts) > 1 else Linear([self.parts[0].part(0, rows)])


class Grouped:
    """Block-diagonal: matrix g of (groups, rows, columns) takes the g-th part of x."""

    def __init__(self, packed: Packed) -> None:
        self.packed = packed

    def __call__(self, x: Tensor, out: Tensor | None = None, halves: bool = False) -> Tensor:
        """x (n, groups * columns) -> (n, groups * rows) float32; of a kernel with `halves`: float16."""
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
    expert that every row uses: the shared one. settles: as of `Linear`, with every call.
    """

    settles = False

    def __init__(self, gate_up: Packed, down: Packed, limit: float) -> None:
        self.gate_up, self.down, self.limit = gate_up, down, limit

    def __call__(
        self,
        x: Tensor,
        ids: Tensor | None = None,
        weights: Tensor | None = None,
        add: Tensor | None = None,
        out: Tensor | None = None,
        ahead: Sequence[Tensor] = (),
        settled: bool = False,
        parts: bool = False,
    ) -> Tensor:
        """add + sum over picks of w2 (silu(min(w1 x, limit)) * clip(w3 x) * weight): (n, d) float32.

        x (n, d); ids (n, picks) int32 and weights (n, picks) float32, both None for a shared expert; add
        (n, d) float32 or None, of one row perhaps in two; ahead, parts: as in `Linear`. settled: x, ids and
        weights were there before the operation before this one, which `settles`.
        """
        rows = []
        for number in range(x.shape[0]):
            row = x[number : number + 1]
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
            result = result + add.view(-1, *result.shape).sum(0)
        return result if out is None else out.copy_(result)


@dataclass(frozen=True)
class ConnectionWeights:
    """A hyper-connection and the norm behind it, all float32.

    fn: ((2 + s) s, s * d) of a layer, or (s, s * d) of the model's head; scale: (3,) or (1,); base: like fn's
    rows; norm: (d,). norm_eps: of both norms; eps, rounds: of Sinkhorn.
    """

    fn: Tensor
    scale: Tensor
    base: Tensor
    norm: Tensor
    norm_eps: float
    eps: float
    rounds: int

    @property
    def streams(self) -> int:
        """s: a layer's fn has (2 + s) s rows, the head's s, and both s * d columns."""
        return self.fn.shape[1] // self.norm.shape[0]

    @property
    def head(self) -> bool:
        """Whether this is the model's head, which has no way back."""
        return self.fn.shape[0] == self.streams


class Connection:
    """Everything between two sublayers: the streams out of one, the input of the next.

    adds: whether the sublayer's output may come in two parts, to be added up. ahead: what a call reads of the
    weights.
    """

    adds = False

    def __init__(self, weights: ConnectionWeights) -> None:
        self.weights = weights
        self.ahead = [weights.fn]

    def __call__(
        self,
        streams: Tensor,
        output: Tensor | None = None,
        gates: Tensor | None = None,
        peak: Tensor | None = None,
        settled: bool = False,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """The streams X' with the last sublayer's output in them, x = RMSNorm(sum_i pre_i X'_i), new gates.

        streams: (n, s, d); output: (n, d) float32 and gates: (n, s + s * s) float32, post then comb row by
        row (of the kernel: the logits of comb), as the call before gave them: both None before the first
        sublayer, where X' is X. peak: (n,) float32, written: max |X'|. settled: streams and gates were there
        before the operation before this one, which `settles`. Returns (n, s, d) and (n, d) of the
        streams' type and gates, None from the head.
        """
        w, s = self.weights, self.weights.streams
        if output is not None and gates is not None:
            comb = gates[:, s:].view(-1, s, s)
            streams = mhc.expand(streams, gates[:, :s], comb, output)
        if peak is not None:
            peak.copy_(streams.flatten(1).abs().amax(1))
        mix = mhc.mixes(streams, w.fn, w.norm_eps)
        if w.head:
            pre, following = torch.sigmoid(mix * w.scale + w.base) + w.eps, None
        else:
            pre, post, comb = mhc.weights(mix, w.scale, w.base, s, w.eps, w.rounds)
            following = torch.cat([post, comb.flatten(1)], 1)
        return streams, rms_norm(mhc.collapse(streams, pre), w.norm, w.norm_eps), following


class Router:
    """Which experts a token goes to, and with what weights.

    bias: (experts,) float32 of a layer that chooses by score; table: (vocab, picks) int64 of one that chooses
    by the token's id. One of them is None.
    """

    def __init__(self, bias: Tensor | None, table: Tensor | None, picks: int, scaling: float) -> None:
        self.bias, self.table, self.picks, self.scaling = bias, table, picks, scaling

    def __call__(self, logits: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """logits (n, experts) float32, tokens (n,) int64 -> ids (n, picks) int32, weights (n, picks)
        float32.
        """
        scores = router_scores(logits)
        if self.table is not None:
            chosen = self.table.index_select(0, tokens)
        else:
            chosen = top_k(scores if self.bias is None else scores + self.bias, self.picks)
        return chosen.int(), routing_weights(scores, chosen, self.scaling)


@dataclass(frozen=True)
class AttentionSizes:
    """One layer's attention. sink: (heads,) float32; ratio: tokens a compressed row stands for, 0 without."""

    sink: Tensor
    head_dim: int
    window: int
    ratio: int
    norm_eps: float


class Attention:
    """One token's attention over the window's ring and compressed rows, from raw queries to turned-back
    sums.
    """

    def __init__(self, sizes: AttentionSizes, rows: Rows) -> None:
        self.sizes, self.rows = sizes, rows

    def __call__(
        self,
        query: Tensor,
        rotation: Tensor,
        position: Tensor,
        ring: Tensor,
        blocks: Tensor | None = None,
        chosen: Tensor | None = None,
        settled: bool = False,
    ) -> Tensor:
        """(1, heads * head_dim), in the order of the heads.

        query: (1, heads * head_dim) float32, before its norm and rotation; rotation: (1, R / 2) complex64
        of the position; position: (1,) int64, counting from 0, whose row is in the ring already. ring:
        (window, width) stored rows, that of position p at p % window; blocks: (m, width) stored compressed
        rows, of which the first (position + 1) // ratio are visible, only those in chosen (k,) int64 when
        given. settled: all but query and chosen was there before the operation before this one, which
        `settles`.
        """
        s = self.sizes
        heads = query.reshape(1, -1, s.head_dim).float()
        heads = rotate_(heads * (inverse_rms(heads, s.norm_eps) * s.head_dim**-0.5), rotation)
        masks = [_below(position + 1, torch.arange(s.window, device=query.device))]
        parts = [self.rows.load(ring)]
        if blocks is not None:
            visible = (position + 1) // s.ratio
            if chosen is None:
                masks.append(_below(visible, torch.arange(blocks.shape[0], device=query.device)))
                parts.append(self.rows.load(blocks))
            else:
                masks.append(_below(visible, chosen))
                parts.append(self.rows.load(blocks.index_select(0, chosen)))
        mask = torch.cat([*masks, masks[0].new_zeros(1)])[None]
        # Nobody has written some of the rows that are not seen: 0 times what is there may be NaN.
        rows = attention.with_sink_row(*parts).masked_fill(mask[0, :, None] < 0, 0.0)
        out = attention.dense(heads, rows, mask, s.sink)
        return rotate_(out, rotation.conj()).view(1, -1)


def _below(limit: Tensor, index: Tensor) -> Tensor:
    """0 where index (k,) is below limit (1,), else -inf."""
    return torch.where(index < limit, 0.0, -torch.inf)
