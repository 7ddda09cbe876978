"""The decode step of the CPU: one token through the model on numpy views of its weights and cache.

The same computation as `Model.forward` for one token with float32 weights, arranged for batch 1. There a
step is hundreds of small operations, and on a CPU their calls cost more than their arithmetic: numpy's
take a third of torch's, its matrix-vector products use all cores, and the gates of the hyper-connections
are plain Python. Weights, cache and rounding are shared with `Model`; nothing is kept twice.
"""

import math
from typing import TYPE_CHECKING

import numpy as np
import torch

from dsv4chat.kernels.unrolled_mhc import Gates, make_gates
from dsv4chat.runtime.block import Block
from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.decode_arrays import Floats, normalise
from dsv4chat.runtime.decode_attention import DecodeAttention, Rotations, RowBuffers
from dsv4chat.runtime.decode_moe import DecodeMoE
from dsv4chat.runtime.hyper_connections import HyperConnection

if TYPE_CHECKING:
    from dsv4chat.runtime.model import Model


class DecodeConnection:
    """A hyper-connection for one token. mixing: (s, s + 1) = [comb^T | post]."""

    def __init__(self, connection: HyperConnection, norm: torch.Tensor, streams: int, gates: Gates) -> None:
        s = streams
        sizes = [s, s, s * s]
        self.fn: Floats = connection.fn.numpy()
        self.scale: Floats = np.repeat(connection.scale.numpy(), sizes)
        self.base: Floats = connection.base.numpy()
        self.norm: Floats = norm.numpy()
        self.gates = gates
        self.mix = np.empty(self.fn.shape[0], np.float32)
        self.pre = np.empty(s, np.float32)
        self.mixing = np.empty((s, s + 1), np.float32)
        self._mixing = self.mixing.reshape(-1)

    def enter(self, streams: Floats, x: Floats, norm_eps: float) -> None:
        """Streams (s, hidden) -> the sublayer's input x (hidden,), normalised; sets `mixing`."""
        flat = streams.reshape(-1)
        mix = np.dot(self.fn, flat, out=self.mix)
        mix *= np.float32(1.0 / math.sqrt(float(flat.dot(flat)) / flat.size + norm_eps))
        mix *= self.scale
        mix += self.base
        self.pre[:], self._mixing[:] = self.gates(mix.tolist())
        np.dot(self.pre, streams, out=x)
        normalise(x, self.norm, norm_eps)


class DecodeLayer:
    """One layer for one token."""

    def __init__(self, block: Block, gates: Gates) -> None:
        streams = block.config.hc_mult
        self.eps = block.config.norm_eps
        self.attention_connection = DecodeConnection(
            block.attention_connection, block.attention_norm, streams, gates
        )
        self.attention = DecodeAttention(block.attention)
        self.moe_connection = DecodeConnection(block.moe_connection, block.moe_norm, streams, gates)
        self.moe = DecodeMoE(block.moe)


class Decoder:
    """Steps one token at a time; its buffers serve one step at a time."""

    def __init__(self, model: "Model") -> None:
        config = self.config = model.config
        gates = make_gates(config.hc_mult, config.hc_eps, config.sinkhorn_rounds)
        self.layers = [DecodeLayer(block, gates) for block in model.layers]
        self.embedding: Floats = model.embedding.numpy()
        self.plain_frequencies: Floats = model.frequencies.plain.numpy()
        self.frequencies: Floats = model.frequencies.compressed.numpy()
        self.head_fn: Floats = model.head_connection.fn.numpy()
        self.head_scale: Floats = model.head_connection.scale.numpy()
        self.head_base: Floats = model.head_connection.base.numpy()
        self.norm: Floats = model.norm.numpy()
        self.lm_head: Floats = model.lm_head.weight.numpy()
        self.x = np.empty(config.hidden_size, np.float32)
        # One slot before each sublayer and one at the end: the streams, and the sublayer's output below them.
        slots = 2 * config.num_layers + 1
        self.slots = np.zeros((slots, config.hc_mult + 1, config.hidden_size), np.float32)
        self.rows: dict[str, RowBuffers] = {}  # by kv_dtype

    def step(self, token: int, cache: KVCache) -> tuple[torch.Tensor, torch.Tensor]:
        """Feed one token; returns logits (1, vocab) and |X| (layers,). `cache.begin(1)` has been called."""
        with np.errstate(all="ignore"):  # infinities are for the sampler to refuse, not to warn of
            return self._step(token, cache)

    def _step(self, token: int, cache: KVCache) -> tuple[torch.Tensor, torch.Tensor]:
        config, s, slots, x = self.config, self.config.hc_mult, self.slots, self.x
        compressed = Rotations(cache.position, self.frequencies)
        plain = Rotations(cache.position, self.plain_frequencies)
        slots[0, :s] = self.embedding[token]
        rows = self._row_buffers(cache)
        at = 0
        for layer, layer_cache in zip(self.layers, cache.layers, strict=True):
            connection, attention = layer.attention_connection, layer.attention
            connection.enter(slots[at, :s], x, config.norm_eps)
            attention.forward(
                x, slots[at, s], layer_cache, rows, plain if attention.plain_rope else compressed
            )
            np.dot(connection.mixing, slots[at], out=slots[at + 1, :s])
            connection = layer.moe_connection
            connection.enter(slots[at + 1, :s], x, config.norm_eps)
            layer.moe.forward(x, slots[at + 1, s], token)
            np.dot(connection.mixing, slots[at + 1], out=slots[at + 2, :s])
            at += 2
        residual = np.abs(slots[2::2, :s]).max(axis=(1, 2))
        return torch.from_numpy(self._logits(slots[at, :s])[None]), torch.from_numpy(residual)

    def _logits(self, streams: Floats) -> Floats:
        """hc_head, final norm and lm_head: (s, hidden) -> (vocab,)."""
        config, x = self.config, self.x
        flat = streams.reshape(-1)
        mix = np.dot(self.head_fn, flat)
        mix *= np.float32(1.0 / math.sqrt(float(flat.dot(flat)) / flat.size + config.norm_eps))
        pre = 1 / (1 + np.exp(-(mix * self.head_scale + self.head_base))) + np.float32(config.hc_eps)
        np.dot(pre, streams, out=x)
        normalise(x, self.norm, config.norm_eps)
        logits: Floats = np.dot(self.lm_head, x)
        return logits

    def _row_buffers(self, cache: KVCache) -> RowBuffers:
        if cache.kv_dtype not in self.rows:
            self.rows[cache.kv_dtype] = RowBuffers(cache.rows, cache.keys, self.config)
        return self.rows[cache.kv_dtype]
