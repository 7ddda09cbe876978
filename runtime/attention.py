"""Attention of one layer: window, compressed sparse (CSA) or heavily compressed (HCA).

    qr = RMSNorm(wq_a x), q = wq_b qr, each head divided by its own RMS
    kv = RMSNorm(wkv x), one head, both key and value
    RoPE on the last channels of q and kv; softmax over [window rows, compressed rows, sink]; inverse RoPE
    output: each group of heads through its own block of wo_a, then wo_b

The query at position p sees the rows of the last `window` positions and the blocks b < (p + 1) // ratio;
in CSA only those its indexer chose. Window and blocks overlap by design.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4chat.kernels import attention
from dsv4chat.kernels.linear import Stack
from dsv4chat.kernels.norms import inverse_rms, rms_norm
from dsv4chat.kernels.packed import Matrix, dense
from dsv4chat.kernels.rope import rotate_
from dsv4chat.kernels.topk import top_k
from dsv4chat.runtime.compressor import Compressor
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.indexer import Indexer
from dsv4chat.runtime.layer_cache import LayerCache
from dsv4chat.runtime.step import Step, Tile
from dsv4chat.runtime.trace import Choice, LayerTrace


@dataclass
class AttentionWeights:
    """Matrices of one layer's attention.

    inputs: stacks over the layer's input, in this order over all stacks: wq_a, wkv; compressed layers:
    compressor wkv, wgate; CSA: indexer compressor wkv, wgate, weights_proj. queries: over the low-rank
    query: wq_b, indexer wq_b. wo_a: (o_groups * o_lora_rank, heads / o_groups * head_dim).
    """

    inputs: list[Stack]
    queries: Stack
    q_norm: Tensor
    kv_norm: Tensor
    sink: Tensor
    wo_a: Matrix
    wo_b: Matrix
    compressor: Compressor | None
    indexer: Indexer | None


class Attention:
    """One layer's attention."""

    def __init__(self, config: ModelConfig, layer: int, weights: AttentionWeights) -> None:
        self.config = config
        self.weights = weights
        self.kind = config.layer_kind(layer)
        self.ratio = config.compress_ratios[layer]
        self.scale = config.head_dim**-0.5

    def forward(self, x: Tensor, cache: LayerCache, step: Step, trace: LayerTrace | None = None) -> Tensor:
        """x (n, hidden), normalised -> (n, hidden)."""
        config, weights = self.config, self.weights
        parts = iter([part for stack in weights.inputs for part in stack(x)])
        table = step.plain_rotations if self.kind == "window" else step.rotations
        low_rank = rms_norm(next(parts), weights.q_norm, config.norm_eps)
        query, *index_query = weights.queries(low_rank)
        query = query.float().reshape(-1, config.num_heads, config.head_dim)
        query = rotate_(query * (inverse_rms(query, config.norm_eps) * self.scale), table)

        kv = rotate_(rms_norm(next(parts).float(), weights.kv_norm, config.norm_eps), table)
        stored, values = cache.round(kv)
        rows = torch.cat([cache.window_rows(step.position), values])
        if cache.blocks is not None:
            self._compress(next(parts), next(parts), cache, step)
        index = None
        if weights.indexer is not None:
            index = self._index(index_query[0], next(parts), next(parts), next(parts), cache, step)

        tiles = [self._tile(tile, query, rows, index, cache, step, trace) for tile in step.tiles]
        out = torch.cat(tiles) if len(tiles) > 1 else tiles[0]
        cache.write_window(step.position, stored, values)
        return self._project(rotate_(out, table.conj()), x.dtype)

    def _compress(self, kv: Tensor, gate: Tensor, cache: LayerCache, step: Step) -> None:
        """Let the compressor take in this pass, and store the rows of the blocks it closes."""
        compressor = self.weights.compressor
        assert compressor is not None
        assert cache.open_block is not None
        assert cache.blocks is not None
        rows = compressor.advance(kv, gate, cache.open_block, step)
        if rows is not None:
            cache.blocks.write(step.closed_blocks(self.ratio)[0], rows)

    def _index(
        self, query: Tensor, kv: Tensor, gate: Tensor, weights: Tensor, cache: LayerCache, step: Step
    ) -> tuple[Tensor, Tensor]:
        """Store the index keys of the blocks this pass closes; returns the index query, rotated, and its
        weights.
        """
        indexer = self.weights.indexer
        assert indexer is not None
        assert cache.open_key is not None
        assert cache.keys is not None
        keys = indexer.compressor.advance(kv, gate, cache.open_key, step)
        if keys is not None:
            cache.keys.write(step.closed_blocks(self.ratio)[0], keys)
        query = query.float().reshape(-1, indexer.heads, indexer.head_dim)
        return rotate_(query, step.rotations), weights.float()

    def _tile(
        self,
        tile: Tile,
        query: Tensor,
        rows: Tensor,
        index: tuple[Tensor, Tensor] | None,
        cache: LayerCache,
        step: Step,
        trace: LayerTrace | None,
    ) -> Tensor:
        """Attention of one tile's queries: (t, heads, head_dim)."""
        sink = self.weights.sink
        query = query[tile.first : tile.last]
        window = rows[tile.low : tile.high]
        most = step.most_visible(tile, self.ratio) if self.ratio else 0
        if cache.blocks is None or most == 0:
            return attention.dense(query, attention.with_sink_row(window), step.mask(tile, 0), sink)
        indexer = self.weights.indexer
        if index is None or indexer is None or most <= indexer.topk:
            shared = attention.with_sink_row(window, cache.blocks.load(most))
            return attention.dense(query, shared, step.mask(tile, self.ratio), sink)

        assert cache.keys is not None
        visible = step.visible_blocks(tile, self.ratio)
        scores = indexer.scores(
            index[0][tile.first : tile.last], index[1][tile.first : tile.last], cache.keys, visible, most
        )
        picked = top_k(scores, indexer.topk)
        hidden = picked >= visible[:, None]
        if trace is not None:
            trace.blocks.append(Choice(tile.first, scores, picked.masked_fill(hidden, -1)))
        own = cache.blocks.gather(picked.flatten(), most)
        mask = torch.zeros(picked.shape, device=query.device).masked_fill_(hidden, -torch.inf)
        return attention.selected(
            query,
            attention.with_sink_row(window),
            step.mask(tile, 0),
            sink,
            own.view(*picked.shape, -1),
            mask,
        )

    def _project(self, out: Tensor, dtype: torch.dtype) -> Tensor:
        """(n, heads, head_dim) float32 -> (n, hidden) of `dtype`, group by group."""
        wo_b = dense(self.weights.wo_b, dtype)
        wo_a = dense(self.weights.wo_a, dtype)
        wo_a = wo_a.view(self.config.o_groups, -1, wo_a.shape[1])
        groups = out.reshape(out.shape[0], wo_a.shape[0], -1).to(dtype).transpose(0, 1)
        low_rank = torch.bmm(groups, wo_a.transpose(1, 2)).transpose(0, 1).reshape(out.shape[0], -1)
        return low_rank @ wo_b.t()
