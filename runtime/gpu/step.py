"""The decode step: one token through the model, in static shapes, its place and its choices on the device.

    x, post, comb = enter(X);  X = expand(X, post, comb, attention(RMSNorm(x)));  the same with the experts
    logits = lm_head(RMSNorm(hc_head(X)));  token = sample(logits)

The formulae are those of `runtime.model`; every function here runs on any device, in a graph or without.
"""

import torch
from torch import Tensor

from dsv4chat.kernels.cute.operations import Connection, Operations
from dsv4chat.kernels.step_operations import ConnectionWeights
from dsv4chat.kernels.step_start import StartWeights
from dsv4chat.runtime.block import Block
from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.gpu.attention import StepAttention
from dsv4chat.runtime.gpu.moe import StepMoE
from dsv4chat.runtime.gpu.now import Now
from dsv4chat.runtime.gpu.projections import Projections
from dsv4chat.runtime.gpu.record import Records
from dsv4chat.runtime.gpu.sampler import CHOSEN, Kind, choose, token_of
from dsv4chat.runtime.gpu.sections import Sections
from dsv4chat.runtime.gpu.state import StepState
from dsv4chat.runtime.hyper_connections import HyperConnection
from dsv4chat.runtime.model import Model


class StepLayer:
    """One layer, and the passages of the residual streams into its sublayers."""

    def __init__(self, block: Block, operations: Operations) -> None:
        config = block.config
        self.into_attention = _connection(
            block.attention_connection, block.attention_norm, config, operations
        )
        self.attention = StepAttention(block.attention, operations)
        self.into_moe = _connection(block.moe_connection, block.moe_norm, config, operations)
        self.moe = StepMoE(block.moe, operations)


class DecodeStep:
    """The step of one model; holds no state of a conversation. operations: default PyTorch's."""

    def __init__(self, model: Model, operations: Operations | None = None) -> None:
        operations = operations or Operations(None)
        self.model = model
        self.operations = operations
        self.start = operations.start(
            StartWeights(
                model.embedding,
                model.frequencies.plain,
                model.frequencies.compressed,
                model.config.hc_mult,
                sorted({block.attention.ratio for block in model.layers} - {0}),
            )
        )
        self.layers = [StepLayer(block, operations) for block in model.layers]
        self.into_head = _connection(model.head_connection, model.norm, model.config, operations)
        self.lm_head = Projections(operations, [model.lm_head])
        self.sampling = operations.sampling(model.config.vocab_size)

    @torch.inference_mode()
    def forward(
        self,
        cache: KVCache,
        state: StepState,
        bucket: int,
        sections: Sections | None = None,
        peaks: bool = True,
    ) -> tuple[Tensor, Tensor]:
        """Feed `state.token` at `state.position`, which is below `bucket`: logits (1, vocab) float32 and |X|
        after each layer (layers,) float32, undefined without `peaks`.
        """
        sections = sections or Sections()
        begun = self.start(state.token, state.position)
        now, streams = Now(state, begun, bucket), begun.streams
        residual = torch.empty(len(self.layers) + 1, device=streams.device)  # first: the embedding's
        sections.end("embedding, rotations")
        out = gates = None
        count = len(self.layers)
        for number, (layer, layer_cache) in enumerate(zip(self.layers, cache.layers, strict=True)):
            peak = residual[number : number + 1] if peaks else None
            settled = number > 0 and self.layers[number - 1].moe.routed.settles
            streams, x, gates = layer.into_attention(streams, out, gates, peak, settled)
            sections.end("hyper-connections")
            ahead = _read_by(layer.into_moe, streams, gates)
            out = layer.attention.forward(x, layer_cache, now, sections, ahead, layer.into_moe.adds)
            streams, x, gates = layer.into_moe(streams, out, gates, settled=layer.attention.wo_b.settles)
            sections.end("hyper-connections")
            following = self.layers[number + 1].into_attention if number + 1 < count else self.into_head
            ahead = _read_by(following, streams, gates)
            out = layer.moe.forward(x, now, sections, ahead, following.adds)
        peak = residual[-1:] if peaks else None
        _, x, _ = self.into_head(streams, out, gates, peak, self.layers[-1].moe.routed.settles)
        (logits,) = self.lm_head(x)
        sections.end("head")
        return logits, residual[1:]

    @torch.inference_mode()
    def bare(self, cache: KVCache, state: StepState, bucket: int) -> Tensor:
        """The step without |X|, record and next state: the most probable id alone, to be timed against."""
        logits, _ = self.forward(cache, state, bucket, peaks=False)
        return logits[0].argmax()

    @torch.inference_mode()
    def tail(
        self,
        streams: Tensor,
        out: Tensor,
        gates: Tensor,
        state: StepState,
        records: Records,
        kind: Kind,
        vocab_limit: int | None,
    ) -> None:
        """The step from the last layer's output on, as `run` does it, to be timed alone."""
        residual = torch.zeros(len(self.layers) + 1, device=streams.device)
        _, x, _ = self.into_head(streams, out, gates, residual[-1:])
        (logits,) = self.lm_head(x)
        self._choose(logits, residual[1:], state, records, kind, vocab_limit)

    @torch.inference_mode()
    def run(
        self,
        cache: KVCache,
        state: StepState,
        records: Records,
        bucket: int,
        kind: Kind,
        vocab_limit: int | None,
        sections: Sections | None = None,
    ) -> None:
        """The whole step: feed, choose, report, and make `state` ready for the next."""
        sections = sections or Sections()
        sections.begin()
        logits, residual = self.forward(cache, state, bucket, sections)
        self._choose(logits, residual, state, records, kind, vocab_limit)
        sections.end("sampling, record")

    def _choose(
        self,
        logits: Tensor,
        residual: Tensor,
        state: StepState,
        records: Records,
        kind: Kind,
        vocab_limit: int | None,
    ) -> None:
        row = logits[0, :vocab_limit]
        if self.sampling is not None:
            given = None if kind == "greedy" else token_of(row, state, kind)
            self.sampling(row, given, residual, state.turn, records.host)
            return
        chosen, outcome, report = choose(row, state, kind)
        records.write(state.number, outcome, chosen, report, residual)
        state.advance(chosen, outcome == CHOSEN)


def _read_by(connection: Connection, streams: Tensor, gates: Tensor | None) -> list[Tensor]:
    """What a passage reads beside the sublayer's output."""
    return [*connection.ahead, streams, *([] if gates is None else [gates])]


def _connection(
    source: HyperConnection, norm: Tensor, config: ModelConfig, operations: Operations
) -> Connection:
    """A hyper-connection and the norm behind it."""
    return operations.connection(
        ConnectionWeights(
            source.fn,
            source.scale,
            source.base,
            norm,
            config.norm_eps,
            config.hc_eps,
            config.sinkhorn_rounds,
        )
    )
