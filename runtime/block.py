"""One layer: attention, then the mixture of experts, each inside a hyper-connection.

x, post, comb = enter(X);  X = expand(X, post, comb, sublayer(RMSNorm(x)))
"""

import torch
from torch import Tensor

from dsv4chat.kernels import hyper_connections as mhc
from dsv4chat.kernels.norms import rms_norm
from dsv4chat.runtime.attention import Attention
from dsv4chat.runtime.layer_cache import LayerCache
from dsv4chat.runtime.loading import Loader, load_attention, load_connection, load_moe
from dsv4chat.runtime.moe import MoE
from dsv4chat.runtime.step import Step
from dsv4chat.runtime.trace import LayerTrace


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

    def forward(self, streams: Tensor, cache: LayerCache, step: Step, trace: LayerTrace | None) -> Tensor:
        """streams (n, s, hidden) -> streams after this layer."""
        config = self.config
        x, post, comb = self.attention_connection.enter(streams, config)
        x = rms_norm(x, self.attention_norm, config.norm_eps)
        streams = mhc.expand(streams, post, comb, self.attention.forward(x, cache, step, trace))

        x, post, comb = self.moe_connection.enter(streams, config)
        x = rms_norm(x, self.moe_norm, config.norm_eps)
        streams = mhc.expand(streams, post, comb, self.moe.forward(x, step.ids, trace))
        if trace is not None:
            trace.streams = streams
        return streams
