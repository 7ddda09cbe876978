"""One layer's attention for one token on the CPU: `attention.Attention` and what it uses, on numpy views.

See `decode.py` for why this exists. The steps and their order are those of `attention.py`.
"""

import numpy as np
import numpy.typing as npt
import torch

from dsv4chat.kernels.kv_rows import Rows
from dsv4chat.kernels.packed import dense
from dsv4chat.kernels.single_row import SingleRow, single_row
from dsv4chat.kernels.topk import highest
from dsv4chat.runtime.attention import Attention
from dsv4chat.runtime.compressor import Compressor
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.decode_arrays import Floats, normalise, rotatable
from dsv4chat.runtime.layer_cache import BlockRows, LayerCache, OpenBlock

Complex = npt.NDArray[np.complex64]


class Rotations:
    """RoPE of one token, (R / 2,) complex64: `now` at its position, `back` its inverse, `block` its block."""

    def __init__(self, position: int, frequencies: Floats) -> None:
        self.position = position
        self.frequencies = frequencies
        self.now = self._at(position)
        self.back = self.now.conj()
        self._blocks: dict[int, Complex] = {}

    def block(self, ratio: int) -> Complex:
        """Rotation at the first token of the current block of `ratio` tokens."""
        if ratio not in self._blocks:
            self._blocks[ratio] = self._at(self.position // ratio * ratio)
        return self._blocks[ratio]

    def _at(self, position: int) -> Complex:
        angles = np.float32(position) * self.frequencies
        result = np.empty(angles.shape, np.complex64)
        np.cos(angles, out=result.real)
        np.sin(angles, out=result.imag)
        return result


class DecodeCompressor:
    """`compressor.Compressor` for one token."""

    def __init__(self, compressor: Compressor) -> None:
        self.ratio = compressor.ratio
        self.eps = compressor.eps
        self.ape: Floats = compressor.ape.numpy()
        self.norm: Floats = compressor.norm.numpy()

    def advance(self, kv: Floats, gate: Floats, open_block: OpenBlock, rotations: Rotations) -> Floats | None:
        """Take in kv and gate (width,); returns the row (d,) of the block this token closes, or None."""
        slot = rotations.position % self.ratio
        rows: Floats = open_block.rows.numpy()
        rows[0, slot] = kv
        np.add(gate, self.ape[slot], out=rows[1, slot])
        if slot < self.ratio - 1:
            return None
        if open_block.previous is not None:
            previous: Floats = open_block.previous.numpy()
            d = previous.shape[2]
            pooled = np.concatenate((previous, rows[:, :, d:]), axis=1)
            previous[:] = rows[:, :, :d]
        else:
            pooled = rows
        weights = np.exp(pooled[1] - pooled[1].max(axis=0))
        row: Floats = (weights * pooled[0]).sum(axis=0)
        row /= weights.sum(axis=0)
        normalise(row, self.norm, self.eps)
        turned = rotatable(row, rotations.now.size)
        np.multiply(turned, rotations.block(self.ratio), out=turned)
        return row


class DecodeAttention:
    """Buffers and numpy views of one layer's attention."""

    def __init__(self, attention: Attention) -> None:
        config, weights = attention.config, attention.weights
        self.ratio = attention.ratio
        self.plain_rope = attention.kind == "window"
        self.scale = attention.scale
        self.eps = config.norm_eps
        self.heads, self.d = config.num_heads, config.head_dim
        (inputs,) = weights.inputs
        self.inputs: Floats = inputs.weight.numpy()
        self.projected = np.empty(self.inputs.shape[0], np.float32)
        self.parts: list[Floats] = np.split(self.projected, np.cumsum(inputs.sizes)[:-1])
        self.queries: Floats = weights.queries.weight.numpy()
        self.query = np.empty(self.queries.shape[0], np.float32)
        self.head_query = self.query[: self.heads * self.d].reshape(self.heads, self.d)
        self.squares = np.empty_like(self.head_query)
        pairs = config.rope_head_dim // 2
        self.query_rope = rotatable(self.head_query, pairs)
        self.kv_rope = rotatable(self.parts[1], pairs)
        self.q_norm: Floats = weights.q_norm.numpy()
        self.kv_norm: Floats = weights.kv_norm.numpy()
        self.sink: Floats = weights.sink.numpy()[:, None]
        wo_a, wo_b = (dense(matrix, torch.float32) for matrix in (weights.wo_a, weights.wo_b))
        self.wo_a: Floats = wo_a.view(config.o_groups, -1, wo_a.shape[1]).numpy()
        self.wo_b: Floats = wo_b.numpy()
        self.compressor = None if weights.compressor is None else DecodeCompressor(weights.compressor)
        self.indexer = weights.indexer
        if weights.indexer is not None:
            self.key_compressor = DecodeCompressor(weights.indexer.compressor)
            self.index_query = self.query[self.heads * self.d :].reshape(weights.indexer.heads, -1)
            self.index_rope = rotatable(self.index_query, pairs)

    def forward(self, x: Floats, out: Floats, cache: LayerCache, rows: "RowBuffers", rope: Rotations) -> None:
        """x (hidden,), normalised -> out (hidden,)."""
        np.dot(self.inputs, x, out=self.projected)
        low_rank, kv = self.parts[0], self.parts[1]
        normalise(low_rank, self.q_norm, self.eps)
        np.dot(self.queries, low_rank, out=self.query)
        query = self.head_query
        np.multiply(query, query, out=self.squares)
        norm = np.sqrt(np.add.reduce(self.squares, axis=1) * np.float32(1 / self.d) + np.float32(self.eps))
        query *= (np.float32(self.scale) / norm)[:, None]
        self.query_rope *= rope.now
        normalise(kv, self.kv_norm, self.eps)
        self.kv_rope *= rope.now

        position = rope.position
        rows.kv.round(kv)
        slot = position % cache.size
        cache.ring_bytes[slot] = rows.kv.bytes
        if cache.values is not cache.ring:
            cache.value_array[slot] = rows.kv.floats
        window = cache.value_array[: min(position + 1, cache.size)]
        visible = self._compress(cache, rows, rope)
        scores = [query @ window.T]
        blocks = None
        if visible and cache.blocks is not None:
            blocks = self._blocks(cache, cache.blocks, rows, rope, visible)
            scores.append(query @ blocks.T)
        scores.append(self.sink)
        weights = np.concatenate(scores, axis=1)
        weights -= np.maximum.reduce(weights, axis=1, keepdims=True)
        np.exp(weights, out=weights)
        total = np.add.reduce(weights, axis=1)
        attended = weights[:, : window.shape[0]] @ window
        if blocks is not None:
            attended += weights[:, window.shape[0] : -1] @ blocks
        attended /= total[:, None]
        turned = rotatable(attended, rope.now.size)
        np.multiply(turned, rope.back, out=turned)
        low = np.matmul(self.wo_a, attended.reshape(self.wo_a.shape[0], -1, 1))
        np.dot(self.wo_b, low.reshape(-1), out=out)

    def _compress(self, cache: LayerCache, rows: "RowBuffers", rope: Rotations) -> int:
        """Let the compressors take in this token; returns how many blocks it may see."""
        if self.compressor is None or cache.open_block is None or cache.blocks is None:
            return 0
        closed = rope.position // self.ratio
        row = self.compressor.advance(self.parts[2], self.parts[3], cache.open_block, rope)
        if row is not None:
            rows.kv.round(row)
            cache.blocks.write_rounded(closed, rows.kv.stored, rows.kv.values)
        if self.indexer is not None and cache.open_key is not None and cache.keys is not None:
            key = self.key_compressor.advance(self.parts[4], self.parts[5], cache.open_key, rope)
            if key is not None:
                rows.key.round(key)
                cache.keys.write_rounded(closed, rows.key.stored, rows.key.values)
        return (rope.position + 1) // self.ratio

    def _blocks(
        self, cache: LayerCache, blocks: BlockRows, rows: "RowBuffers", rope: Rotations, visible: int
    ) -> Floats:
        """The compressed rows this token attends to, (b, d)."""
        if self.indexer is None or cache.keys is None or visible <= self.indexer.topk:
            every: Floats = blocks.load(visible).numpy()
            return every
        self.index_rope *= rope.now
        match = rows.key.query(self.index_query) @ cache.keys.load(visible).numpy().T
        np.maximum(match, 0, out=match)
        chosen = highest((self.parts[6] * np.float32(self.indexer.scale)) @ match, self.indexer.topk)
        gathered: Floats = blocks.gather(torch.from_numpy(chosen), visible).numpy()
        return gathered


class RowBuffers:
    """Rounding of one row in the formats of a cache."""

    def __init__(self, rows: Rows, keys: Rows, config: ModelConfig) -> None:
        self.kv: SingleRow = single_row(rows, config.head_dim)
        self.key: SingleRow = single_row(keys, config.index_head_dim)
