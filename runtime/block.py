"""One layer: attention, then the mixture of experts, each inside a hyper-connection.

x, post, comb = enter(X);  X = expand(X, post, comb, sublayer(RMSNorm(x)))
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from dsv4chat.kernels import hyper_connections as mhc
from dsv4chat.kernels.norms import rms_norm
from dsv4chat.runtime.attention import Attention, Chosen
from dsv4chat.runtime.layer_cache import LayerCache
from dsv4chat.runtime.loading import Loader, load_attention, load_connection, load_moe
from dsv4chat.runtime.moe import MoE
from dsv4chat.runtime.step import Step


@dataclass
class Trace:
    """What a pass did, for comparisons. Lists have one entry a layer.

    streams: (n, s, hidden) after each layer; blocks: what the indexer chose; experts: (n, k) chosen.
    """

    streams: list[Tensor] = field(default_factory=list)
    blocks: list[list[Chosen]] = field(default_factory=list)
    experts: list[list[Tensor]] = field(default_factory=list)


class Block:
    """One layer."""

    def __init__(self, loader: Loader, layer: int) -> None:
        config = loader.config
        self.config = config
        prefix = f"layers.{layer}"
        self.attention_connection = load_connection(loader, f"{prefix}.hc_attn")
        self.attention_norm = loader.tensor(f"{prefix}.attn_norm.weight", torch.float32)
        self.attention = Attention(config, layer, load_attention(loader, layer))
        self.moe_connection = load_connection(loader, f"{prefix}.hc_ffn")
        self.moe_norm = loader.tensor(f"{prefix}.ffn_norm.weight", torch.float32)
        self.moe = MoE(config, load_moe(loader, layer))

    def forward(self, streams: Tensor, cache: LayerCache, step: Step, trace: Trace | None) -> Tensor:
        """streams (n, s, hidden) -> streams after this layer."""
        chosen: list[Chosen] = []
        routed: list[Tensor] = []
        config = self.config
        x, post, comb = self.attention_connection.enter(streams, config)
        x = rms_norm(x, self.attention_norm, config.norm_eps)
        out = self.attention.forward(x, cache, step, None if trace is None else chosen)
        streams = mhc.expand(streams, post, comb, out)

        x, post, comb = self.moe_connection.enter(streams, config)
        x = rms_norm(x, self.moe_norm, config.norm_eps)
        out = self.moe.forward(x, step.ids, None if trace is None else routed)
        streams = mhc.expand(streams, post, comb, out)
        if trace is not None:
            trace.streams.append(streams)
            trace.blocks.append(chosen)
            trace.experts.append(routed)
        return streams
