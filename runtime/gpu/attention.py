"""One layer's attention for one token: `runtime.attention` in static shapes, lengths on the device."""

from collections.abc import Iterator

import torch
from torch import Tensor

from dsv4chat.kernels.cute.operations import Attention as Attend
from dsv4chat.kernels.cute.operations import CacheRows, Operations
from dsv4chat.kernels.norms import rms_norm
from dsv4chat.kernels.packed import as_packed
from dsv4chat.kernels.rope import rotate_
from dsv4chat.kernels.step_operations import AttentionSizes
from dsv4chat.kernels.step_rows import BlockWeights, OpenRows, RowWeights
from dsv4chat.kernels.topk import top_k
from dsv4chat.runtime.attention import Attention
from dsv4chat.runtime.compressor import Compressor
from dsv4chat.runtime.gpu.now import Now, hidden_from
from dsv4chat.runtime.gpu.projections import Projections
from dsv4chat.runtime.gpu.sections import Sections
from dsv4chat.runtime.layer_cache import BlockRows, LayerCache, OpenBlock


class StepAttention:
    """One layer's attention."""

    def __init__(self, source: Attention, operations: Operations) -> None:
        config, weights = source.config, source.weights
        self.config, self.weights = config, weights
        self.kind, self.ratio = source.kind, source.ratio
        self.inputs = Projections(operations, weights.inputs)
        self.queries = Projections(operations, [weights.queries])
        self.wo_a = operations.grouped(as_packed(weights.wo_a).split(config.o_groups))
        self.wo_b = operations.linear([as_packed(weights.wo_b)])
        self._operations = operations
        self._sizes = AttentionSizes(
            weights.sink, config.head_dim, config.window, self.ratio, config.norm_eps
        )
        self._row_weights = RowWeights(
            weights.kv_norm,
            config.norm_eps,
            _block_weights(weights.compressor),
            None if weights.indexer is None else _block_weights(weights.indexer.compressor),
        )
        self._by_storage: dict[type, tuple[CacheRows, Attend]] = {}

    def forward(self, x: Tensor, cache: LayerCache, now: Now, sections: Sections) -> Tensor:
        """x (1, hidden), normalised -> (1, hidden) float32."""
        rows, attend = self._for_storage(cache)
        moment = now.moment(self.ratio)
        parts = iter(self.inputs(x))
        low_rank = rms_norm(next(parts), self.weights.q_norm, self.config.norm_eps)
        kv = next(parts)
        sections.end("attention: input projections")
        query, *index_query = self.queries(low_rank)
        sections.end("attention: query projections")
        block = _open(next(parts), next(parts), cache.open_block, cache.blocks) if self.ratio else None
        key = None
        if self.weights.indexer is not None:
            key = _open(next(parts), next(parts), cache.open_key, cache.keys)
        rows(moment, kv, cache.ring, cache.values, block, key)
        sections.end("attention: cache rows")
        chosen = self._chosen(index_query, parts, cache, now)
        sections.end("attention: indexer")
        count = now.rows(self.ratio) if self.ratio else 0
        blocks = None if cache.blocks is None or count == 0 else cache.blocks.stored[:count]
        out = attend(query, moment.rotation, now.position, cache.ring, blocks, chosen)
        sections.end("attention: softmax")
        low = self.wo_a(out.to(x.dtype))
        result = self.wo_b(low.to(x.dtype))
        sections.end("attention: output projections")
        return result

    def _for_storage(self, cache: LayerCache) -> tuple[CacheRows, Attend]:
        """The operations for the format of a cache's rows."""
        kind = type(cache.rows)
        if kind not in self._by_storage:
            keys = cache.rows if cache.keys is None else cache.keys.format
            self._by_storage[kind] = (
                self._operations.cache_rows(self._row_weights, cache.rows, keys),
                self._operations.attention(self._sizes, cache.rows),
            )
        return self._by_storage[kind]

    def _chosen(
        self, index_query: list[Tensor], parts: Iterator[Tensor], cache: LayerCache, now: Now
    ) -> Tensor | None:
        """The blocks to attend to, (k,) int64; None where all that are visible are."""
        indexer = self.weights.indexer
        if indexer is None or cache.keys is None or now.rows(self.ratio) <= indexer.topk:
            return None
        count = now.rows(self.ratio)
        query = index_query[0].reshape(-1, indexer.heads, indexer.head_dim)
        query = cache.keys.format.query(rotate_(query, now.rotation))[0]
        keys = cache.keys.format.load(cache.keys.stored[:count])
        match = torch.relu(query @ keys.t())
        scores = (next(parts) * indexer.scale) @ match + hidden_from(now.visible(self.ratio), count)
        return top_k(scores, indexer.topk)[0]


def _block_weights(compressor: Compressor | None) -> BlockWeights | None:
    return None if compressor is None else BlockWeights(compressor.ape, compressor.norm)


def _open(
    kv: Tensor, gate: Tensor, block: OpenBlock | None, rows: BlockRows | None
) -> tuple[Tensor, Tensor, OpenRows] | None:
    """A compressor's input with the place it goes to."""
    if block is None or rows is None:
        return None
    return kv, gate, OpenRows(block.rows, block.previous, rows.stored)
