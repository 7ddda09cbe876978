"""The decode step: one token through the model, in static shapes, its place and its choices on the device.

    x, post, comb = enter(X);  X = expand(X, post, comb, attention(RMSNorm(x)));  the same with the experts
    logits = lm_head(RMSNorm(hc_head(X)));  token = sample(logits)

The formulae are those of `runtime.model`; every function here runs on any device, in a graph or without.
"""

import torch
from torch import Tensor

from dsv4chat.kernels import hyper_connections as mhc
from dsv4chat.kernels.cute.operations import Operations
from dsv4chat.kernels.norms import rms_norm
from dsv4chat.runtime.block import Block
from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.gpu.attention import StepAttention
from dsv4chat.runtime.gpu.moe import StepMoE
from dsv4chat.runtime.gpu.moment import Moment
from dsv4chat.runtime.gpu.projections import Projections
from dsv4chat.runtime.gpu.record import Records
from dsv4chat.runtime.gpu.sampler import CHOSEN, Kind, choose
from dsv4chat.runtime.gpu.sections import Sections
from dsv4chat.runtime.gpu.state import StepState
from dsv4chat.runtime.layer_cache import LayerCache
from dsv4chat.runtime.model import Model


class StepLayer:
    """One layer."""

    def __init__(self, block: Block, operations: Operations) -> None:
        self.block = block
        self.attention = StepAttention(block.attention, operations)
        self.moe = StepMoE(block.moe, operations)

    def forward(self, streams: Tensor, cache: LayerCache, moment: Moment, sections: Sections) -> Tensor:
        """streams (1, s, hidden) -> streams after this layer."""
        block, config = self.block, self.block.config
        x, post, comb = block.attention_connection.enter(streams, config)
        x = rms_norm(x, block.attention_norm, config.norm_eps)
        sections.end("hyper-connections")
        out = self.attention.forward(x, cache, moment, sections)
        streams = mhc.expand(streams, post, comb, out)
        x, post, comb = block.moe_connection.enter(streams, config)
        x = rms_norm(x, block.moe_norm, config.norm_eps)
        sections.end("hyper-connections")
        streams = mhc.expand(streams, post, comb, self.moe.forward(x, moment, sections))
        sections.end("hyper-connections")
        return streams


class DecodeStep:
    """The step of one model; holds no state of a conversation. operations: default PyTorch's."""

    def __init__(self, model: Model, operations: Operations | None = None) -> None:
        operations = operations or Operations(None)
        self.model = model
        self.layers = [StepLayer(block, operations) for block in model.layers]
        self.lm_head = Projections(operations, [model.lm_head])

    @torch.inference_mode()
    def forward(
        self, cache: KVCache, state: StepState, bucket: int, sections: Sections | None = None
    ) -> tuple[Tensor, Tensor]:
        """Feed `state.token` at `state.position`, which is below `bucket`: logits (1, vocab) float32 and |X|
        after each layer (layers,) float32.
        """
        sections = sections or Sections()
        model = self.model
        moment = Moment(state, model.frequencies, bucket)
        streams = model.embedding.index_select(0, moment.token)[:, None, :]
        streams = streams.expand(-1, model.config.hc_mult, -1)
        sections.end("embedding, rotations")
        largest = []
        for layer, layer_cache in zip(self.layers, cache.layers, strict=True):
            streams = layer.forward(streams, layer_cache, moment, sections)
            largest.append(streams.abs().amax())
            sections.end("|X|")
        (logits,) = self.lm_head(model.merged(streams))
        sections.end("head")
        return logits, torch.stack(largest).float()

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
        state.feed()
        logits, residual = self.forward(cache, state, bucket, sections)
        chosen, outcome, report = choose(logits[0, :vocab_limit], state, kind)
        records.write(state.number, outcome, chosen, report, residual)
        state.advance(chosen, outcome == CHOSEN)
        sections.end("sampling, record")
