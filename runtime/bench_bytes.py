"""The bytes that one decode step has to read: every weight in use once, every row it attends to once."""

from dataclasses import dataclass

from torch import Tensor

from dsv4chat.kernels.linear import Stack
from dsv4chat.kernels.packed import PackedStack, as_packed_stack
from dsv4chat.runtime.attention import AttentionWeights
from dsv4chat.runtime.block import Block
from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.hyper_connections import HyperConnection
from dsv4chat.runtime.layer_cache import LayerCache
from dsv4chat.runtime.model import Model


@dataclass(frozen=True)
class StepBytes:
    """layers: of all layers together; head: from the last streams to the token; by_operation: of both."""

    layers: int
    head: int
    by_operation: dict[str, int]

    @property
    def total(self) -> int:
        return self.layers + self.head


def step_bytes(model: Model, cache: KVCache, context: int) -> StepBytes:
    """Bytes of the step that feeds the last of `context` tokens, by the names of the step's sections."""
    counted: dict[str, int] = {}
    for block, layer_cache in zip(model.layers, cache.layers, strict=True):
        _add(counted, _block(block, layer_cache, context))
    layers = sum(counted.values())
    head = _connection(model.head_connection) + _stack(model.lm_head)
    _add(counted, {"head": head})
    return StepBytes(layers, head, counted)


def _add(total: dict[str, int], part: dict[str, int]) -> None:
    for name, size in part.items():
        total[name] = total.get(name, 0) + size


def _block(block: Block, cache: LayerCache, context: int) -> dict[str, int]:
    config, weights, moe = block.config, block.attention.weights, block.moe.weights
    share = config.experts_per_token / config.num_experts
    shared = _stack(moe.inputs[0]) + moe.shared_down.nbytes
    router = _stack(moe.inputs[1]) if len(moe.inputs) > 1 else 0
    return {
        "hyper-connections": _connection(block.attention_connection) + _connection(block.moe_connection),
        "attention: input projections": sum(_stack(stack) for stack in weights.inputs),
        "attention: query projections": _queries(weights, 1 + _chooses(weights, cache, context)),
        "attention: output projections": weights.wo_a.nbytes + weights.wo_b.nbytes,
        **_rows(weights, cache, context),
        "experts: router": router,
        "experts: shared": shared,
        "experts: routed": int((moe.gate_up.nbytes + moe.down.nbytes) * share),
    }


def _rows(weights: AttentionWeights, cache: LayerCache, context: int) -> dict[str, int]:
    """Rows of the window, chosen or visible blocks, and all index keys where blocks are chosen."""
    rows = min(context, cache.size)
    keys = 0
    if cache.blocks is not None:
        visible = context // cache.ratio
        if _chooses(weights, cache, context):
            assert weights.indexer is not None
            assert cache.keys is not None
            keys = visible * _row_bytes(cache.keys.stored)
            visible = weights.indexer.topk
        rows += visible
    return {
        "attention: softmax": rows * _row_bytes(cache.ring),
        "attention: indexer": keys,
    }


def _chooses(weights: AttentionWeights, cache: LayerCache, context: int) -> bool:
    """Whether there are more blocks than the indexer lets through."""
    return weights.indexer is not None and context // cache.ratio > weights.indexer.topk


def _queries(weights: AttentionWeights, count: int) -> int:
    """The matrix of the queries, and with 2 that of the index queries."""
    return as_packed_stack(weights.queries).select(0, count).nbytes


def _row_bytes(rows: Tensor) -> int:
    return rows.shape[1] * rows.element_size()


def _stack(stack: Stack) -> int:
    return stack.nbytes if isinstance(stack, PackedStack) else stack.weight.nbytes


def _connection(connection: HyperConnection) -> int:
    return connection.fn.nbytes + connection.base.nbytes + connection.scale.nbytes
