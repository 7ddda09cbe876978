"""One layer's attention for one token in static shapes: `runtime.attention` with lengths on the device.

The compressors pool their block in every step and write the row to the place of the block the token is in.
Until the block is closed nobody sees that row, so there is nothing to decide; only what a closed block leaves
for the next one (CSA's first channel group) is written under a condition.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from dsv4chat.kernels import attention
from dsv4chat.kernels.compressor import pool
from dsv4chat.kernels.cute.operations import Operations
from dsv4chat.kernels.norms import inverse_rms, rms_norm
from dsv4chat.kernels.packed import as_packed
from dsv4chat.kernels.rope import rotate_
from dsv4chat.kernels.topk import top_k
from dsv4chat.runtime.attention import Attention
from dsv4chat.runtime.compressor import Compressor
from dsv4chat.runtime.gpu.moment import Moment, hidden_from
from dsv4chat.runtime.gpu.projections import Projections
from dsv4chat.runtime.gpu.sections import Sections
from dsv4chat.runtime.layer_cache import BlockRows, LayerCache, OpenBlock


class StepAttention:
    """One layer's attention."""

    def __init__(self, source: Attention, operations: Operations) -> None:
        weights = source.weights
        self.config = source.config
        self.kind, self.ratio, self.scale = source.kind, source.ratio, source.scale
        self.weights = weights
        self.inputs = Projections(operations, weights.inputs)
        self.queries = Projections(operations, [weights.queries])
        self.wo_a = operations.grouped(as_packed(weights.wo_a).split(self.config.o_groups))
        self.wo_b = operations.linear([as_packed(weights.wo_b)])

    def forward(self, x: Tensor, cache: LayerCache, moment: Moment, sections: Sections) -> Tensor:
        """x (1, hidden), normalised -> (1, hidden) float32."""
        config, weights = self.config, self.weights
        table = moment.plain_rotation if self.kind == "window" else moment.rotation
        parts = iter(self.inputs(x))
        low_rank = rms_norm(next(parts), weights.q_norm, config.norm_eps)
        kv = rotate_(rms_norm(next(parts), weights.kv_norm, config.norm_eps), table)
        sections.end("attention: input projections")
        query, *index_query = self.queries(low_rank)
        query = query.reshape(-1, config.num_heads, config.head_dim)
        query = rotate_(query * (inverse_rms(query, config.norm_eps) * self.scale), table)
        sections.end("attention: query projections")

        stored, values = cache.round(kv)
        slot = moment.position % config.window
        cache.ring.index_copy_(0, slot, stored)
        if cache.values is not cache.ring:
            cache.values.index_copy_(0, slot, values)
        if cache.blocks is not None:
            assert weights.compressor is not None
            assert cache.open_block is not None
            row = _advance(weights.compressor, next(parts), next(parts), cache.open_block, moment)
            _write(cache.blocks, row, moment.block(self.ratio))
        sections.end("attention: compressor")
        chosen = self._chosen(index_query, parts, cache, moment) if weights.indexer is not None else None
        sections.end("attention: indexer")
        out = self._attend(query, cache, chosen, moment)
        out = rotate_(out, table.conj())
        sections.end("attention: softmax")
        low = self.wo_a(out.reshape(1, -1).to(x.dtype))
        result = self.wo_b(low.to(x.dtype))
        sections.end("attention: output projections")
        return result

    def _chosen(
        self, index_query: list[Tensor], parts: Iterator[Tensor], cache: LayerCache, moment: Moment
    ) -> Tensor | None:
        """Let the index keys take in this token; the chosen blocks (1, k), or None where all are visible."""
        indexer = self.weights.indexer
        assert indexer is not None
        assert cache.open_key is not None
        assert cache.keys is not None
        row = _advance(indexer.compressor, next(parts), next(parts), cache.open_key, moment)
        _write(cache.keys, row, moment.block(self.ratio))
        head_weights = next(parts)
        count = moment.rows(self.ratio)
        if count <= indexer.topk:
            return None
        query = index_query[0].reshape(-1, indexer.heads, indexer.head_dim)
        query = cache.keys.format.query(rotate_(query, moment.rotation))[0]
        keys = cache.keys.format.load(cache.keys.stored[:count])
        match = torch.relu(query @ keys.t())
        scores = (head_weights * indexer.scale) @ match + hidden_from(moment.visible(self.ratio), count)
        return top_k(scores, indexer.topk)

    def _attend(self, query: Tensor, cache: LayerCache, chosen: Tensor | None, moment: Moment) -> Tensor:
        """(1, heads, head_dim) over the window and the blocks."""
        sink = self.weights.sink
        window_mask = hidden_from(moment.position + 1, self.config.window)
        shown = window_mask.new_zeros(1, 1)
        if cache.blocks is None or moment.rows(self.ratio) == 0:
            rows = attention.with_sink_row(cache.values)
            return attention.dense(query, rows, torch.cat([window_mask, shown], 1), sink)
        visible = moment.visible(self.ratio)
        if chosen is None:
            count = moment.rows(self.ratio)
            blocks, mask = cache.blocks.stored[:count], hidden_from(visible, count)
        else:
            blocks = cache.blocks.stored.index_select(0, chosen[0])
            mask = torch.where(chosen < visible, 0.0, -torch.inf)
        rows = attention.with_sink_row(cache.values, cache.blocks.format.load(blocks))
        return attention.dense(query, rows, torch.cat([window_mask, mask, shown], 1), sink)


def _advance(
    compressor: Compressor, kv: Tensor, gate: Tensor, open_block: OpenBlock, moment: Moment
) -> Tensor:
    """Take in kv and gate (1, width); the row (1, d) the token's block has, were this its last token."""
    ratio = compressor.ratio
    slot = moment.position % ratio
    rows, previous = open_block.rows, open_block.previous
    new = torch.stack([kv, gate + compressor.ape.index_select(0, slot)])
    rows.index_copy_(1, slot, new)
    pooled = rows
    if previous is not None:
        d = previous.shape[2]
        pooled = torch.cat([previous, rows[:, :, d:]], 1)
        closes = (slot == ratio - 1) & moment.alive
        previous.copy_(torch.where(closes, rows[:, :, :d], previous))
    row = rms_norm(pool(pooled[:1], pooled[1:]), compressor.norm, compressor.eps)
    return rotate_(row, moment.block_rotation(ratio))


def _write(rows: BlockRows, row: Tensor, block: Tensor) -> None:
    rows.stored.index_copy_(0, block, rows.format.store(row))
