"""One layer's attention for one token: `runtime.attention` in static shapes, lengths on the device."""

from collections.abc import Sequence

from torch import Tensor

from dsv4chat.kernels.cute.operations import Attention as Attend
from dsv4chat.kernels.cute.operations import CacheRows, Index, Operations
from dsv4chat.kernels.packed import as_packed, as_packed_stack
from dsv4chat.kernels.step_index import IndexSizes
from dsv4chat.kernels.step_operations import AttentionSizes
from dsv4chat.kernels.step_rows import BlockWeights, OpenRows, RowWeights
from dsv4chat.runtime.attention import Attention
from dsv4chat.runtime.compressor import Compressor
from dsv4chat.runtime.gpu.now import Now
from dsv4chat.runtime.gpu.projections import Projections
from dsv4chat.runtime.gpu.sections import Sections
from dsv4chat.runtime.layer_cache import BlockRows, LayerCache, OpenBlock

MOST_AHEAD = 1 << 20  # bytes of blocks


class StepAttention:
    """One layer's attention."""

    def __init__(self, source: Attention, operations: Operations) -> None:
        config, weights = source.config, source.weights
        self.config, self.weights = config, weights
        self.kind, self.ratio = source.kind, source.ratio
        self.inputs = Projections(operations, weights.inputs)
        stack = as_packed_stack(weights.queries)
        self._low_type, self._query_rows = stack.dtype, stack.sizes[0]
        self.queries = operations.linear(stack.parts)
        self.queries_alone = self.queries.first(self._query_rows)
        self.wo_a = operations.grouped(as_packed(weights.wo_a).split(config.o_groups))
        self.wo_b = operations.linear([as_packed(weights.wo_b)])
        self._operations = operations
        self._sizes = AttentionSizes(
            weights.sink, config.head_dim, config.window, self.ratio, config.norm_eps
        )
        self._row_weights = RowWeights(
            weights.kv_norm,
            weights.q_norm,
            config.norm_eps,
            _block_weights(weights.compressor),
            None if weights.indexer is None else _block_weights(weights.indexer.compressor),
        )
        self._index_sizes: IndexSizes | None = None
        if (indexer := weights.indexer) is not None:
            self._index_sizes = IndexSizes(
                indexer.heads, indexer.head_dim, indexer.topk, self.ratio, indexer.scale
            )
        self._by_storage: dict[type, tuple[CacheRows, Attend, Index | None]] = {}

    def forward(
        self,
        x: Tensor,
        cache: LayerCache,
        now: Now,
        sections: Sections,
        ahead: Sequence[Tensor] = (),
        parts: bool = False,
    ) -> Tensor:
        """x (1, hidden), normalised -> (1, hidden) float32; with parts perhaps two. ahead: what
        is read after it.
        """
        rows, attend, index = self._for_storage(cache)
        moment = now.moment(self.ratio)
        stored = cache.keys or cache.blocks
        inputs = iter(self.inputs(x, [cache.ring] if stored is None else [cache.ring, stored.stored]))
        low, kv = next(inputs), next(inputs)
        sections.end("attention: input projections")
        block = _open(next(inputs), next(inputs), cache.open_block, cache.blocks) if self.ratio else None
        key = None
        if self.weights.indexer is not None:
            key = _open(next(inputs), next(inputs), cache.open_key, cache.keys)
        low = rows(moment, low, kv, cache.ring, cache.values, block, key).to(self._low_type)
        sections.end("attention: cache rows")
        count = now.rows(self.ratio) if self.ratio else 0
        blocks = None if cache.blocks is None or count == 0 else cache.blocks.stored[:count]
        chosen = None
        if index is None or cache.keys is None or blocks is None or count <= index.sizes.picks:
            query = self.queries_alone(low, settle=True)[:, : self._query_rows]
            sections.end("attention: query projections")
        else:
            # Nobody knows yet which blocks will be read: all of them, while they are few.
            few = [blocks] if blocks.nbytes <= MOST_AHEAD else []
            both = self.queries(low, settle=True, ahead=few)
            query, index_query = both[:, : self._query_rows], both[:, self._query_rows :]
            sections.end("attention: query projections")
            keys = cache.keys.stored[:count]
            chosen = index(index_query, next(inputs), moment.rotation, now.position, keys)
            sections.end("attention: indexer")
        out = attend(query, moment.rotation, now.position, cache.ring, blocks, chosen, self.queries.settles)
        sections.end("attention: softmax")
        low = self.wo_a(self._input(out, x), halves=self.wo_b.takes_halves)
        result = self.wo_b(self._input(low, x), ahead=ahead, settle=True, parts=parts)
        sections.end("attention: output projections")
        return result

    def _input(self, value: Tensor, x: Tensor) -> Tensor:
        """A product's input: the kernels take any type, PyTorch's operations that of x."""
        return value.to(x.dtype) if self._operations.machine is None else value

    def _for_storage(self, cache: LayerCache) -> tuple[CacheRows, Attend, Index | None]:
        """The operations for the format of a cache's rows."""
        kind = type(cache.rows)
        if kind not in self._by_storage:
            keys = cache.rows if cache.keys is None else cache.keys.format
            self._by_storage[kind] = (
                self._operations.cache_rows(self._row_weights, cache.rows, keys),
                self._operations.attention(self._sizes, cache.rows),
                None if self._index_sizes is None else self._operations.index(self._index_sizes, keys),
            )
        return self._by_storage[kind]


def _block_weights(compressor: Compressor | None) -> BlockWeights | None:
    return None if compressor is None else BlockWeights(compressor.ape, compressor.norm)


def _open(
    kv: Tensor, gate: Tensor, block: OpenBlock | None, rows: BlockRows | None
) -> tuple[Tensor, Tensor, OpenRows] | None:
    """A compressor's input with the place it goes to."""
    if block is None or rows is None:
        return None
    return kv, gate, OpenRows(block.rows, block.previous, rows.stored)
