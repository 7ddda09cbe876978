"""The `transformers` model of a checkpoint in float32, its insides observed: the other side of a comparison.

It is built from our reader's dequantised weights and configuration, so that a checkpoint of any spelling and
format can be compared. `transformers` is imported here only, when a comparison is made.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dsv4chat.kernels.formats import to_tensor
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.loading import WeightSource
from dsv4chat.runtime.trace import Choice, LayerTrace, Trace

if TYPE_CHECKING:
    from transformers import DeepseekV4ForCausalLM

_KINDS = {
    "window": "sliding_attention",
    "csa": "compressed_sparse_attention",
    "hca": "heavily_compressed_attention",
}

# state_dict() name -> native name.
_TOP = {
    "model.embed_tokens.weight": "embed.weight",
    "lm_head.weight": "head.weight",
    "model.norm.weight": "norm.weight",
    "model.hc_head.hc_fn": "hc_head_fn",
    "model.hc_head.hc_base": "hc_head_base",
    "model.hc_head.hc_scale": "hc_head_scale",
}
_LAYER = {
    "input_layernorm.weight": "attn_norm.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "attn_hc.fn": "hc_attn_fn",
    "attn_hc.base": "hc_attn_base",
    "attn_hc.scale": "hc_attn_scale",
    "ffn_hc.fn": "hc_ffn_fn",
    "ffn_hc.base": "hc_ffn_base",
    "ffn_hc.scale": "hc_ffn_scale",
    "self_attn.sinks": "attn.attn_sink",
    "self_attn.q_a_proj.weight": "attn.wq_a.weight",
    "self_attn.q_a_norm.weight": "attn.q_norm.weight",
    "self_attn.q_b_proj.weight": "attn.wq_b.weight",
    "self_attn.kv_proj.weight": "attn.wkv.weight",
    "self_attn.kv_norm.weight": "attn.kv_norm.weight",
    "self_attn.o_a_proj.weight": "attn.wo_a.weight",
    "self_attn.o_b_proj.weight": "attn.wo_b.weight",
    "self_attn.compressor.position_bias": "attn.compressor.ape",
    "self_attn.compressor.kv_proj.weight": "attn.compressor.wkv.weight",
    "self_attn.compressor.gate_proj.weight": "attn.compressor.wgate.weight",
    "self_attn.compressor.kv_norm.weight": "attn.compressor.norm.weight",
    "self_attn.compressor.indexer.q_b_proj.weight": "attn.indexer.wq_b.weight",
    "self_attn.compressor.indexer.scorer.weights_proj.weight": "attn.indexer.weights_proj.weight",
    "self_attn.compressor.indexer.position_bias": "attn.indexer.compressor.ape",
    "self_attn.compressor.indexer.kv_proj.weight": "attn.indexer.compressor.wkv.weight",
    "self_attn.compressor.indexer.gate_proj.weight": "attn.indexer.compressor.wgate.weight",
    "self_attn.compressor.indexer.kv_norm.weight": "attn.indexer.compressor.norm.weight",
    "mlp.gate.weight": "ffn.gate.weight",
    "mlp.gate.tid2eid": "ffn.gate.tid2eid",
    "mlp.gate.e_score_correction_bias": "ffn.gate.bias",
    "mlp.shared_experts.gate_proj.weight": "ffn.shared_experts.w1.weight",
    "mlp.shared_experts.up_proj.weight": "ffn.shared_experts.w3.weight",
    "mlp.shared_experts.down_proj.weight": "ffn.shared_experts.w2.weight",
}


class Reference:
    """The `transformers` model of a checkpoint and its cache."""

    def __init__(self, source: WeightSource) -> None:
        self.config = source.config
        self.model = build_reference(source)
        self.clear()

    def clear(self) -> None:
        """Forget what was fed."""
        from transformers import DynamicCache

        self.cache: Any = DynamicCache(config=self.model.config)

    @torch.inference_mode()
    def forward(self, ids: Tensor, trace: Trace | None = None) -> Tensor:
        """Feed ids (n,) after those fed before -> logits (n, vocab)."""
        observers = [] if trace is None else self._observe(trace)
        try:
            logits: Tensor = self.model(ids[None], cache=self.cache, use_cache=True).logits[0]
        finally:
            for observer in observers:
                observer.remove()
        return logits

    def _observe(self, trace: Trace) -> list[Any]:
        """Hooks that add one `LayerTrace` a layer to `trace` during a pass, in the order of the layers."""
        first = len(trace)
        trace.extend(LayerTrace() for _ in range(self.config.num_layers))
        hooks = []
        for layer, module in enumerate(self.model.model.layers):
            record = trace[first + layer]
            hooks.append(module.register_forward_hook(_streams_hook(record)))
            gate = module.mlp.gate
            if not self.config.is_hash_layer(layer):
                hooks.append(gate.register_forward_hook(_router_hook(record, gate.e_score_correction_bias)))
            if self.config.layer_kind(layer) == "csa":
                indexer = module.self_attn.compressor.indexer
                scores: list[Tensor] = []
                hooks.append(indexer.scorer.register_forward_hook(_scores_hook(scores)))
                hooks.append(indexer.register_forward_hook(_blocks_hook(record, scores)))
        return hooks


def build_reference(source: WeightSource) -> "DeepseekV4ForCausalLM":
    """The `transformers` model with the configuration and dequantised weights of `source`, float32."""
    from transformers import DeepseekV4Config, DeepseekV4ForCausalLM

    model = DeepseekV4ForCausalLM(DeepseekV4Config(**reference_config(source.config))).float().eval()
    with torch.inference_mode():
        for name, tensor in model.state_dict().items():
            _fill(name, tensor, source)
    return model


def _fill(name: str, tensor: Tensor, source: WeightSource) -> None:
    """Copy the weights that make up the parameter `name` of the reference into it."""
    if name in _TOP:
        tensor.copy_(to_tensor(source.read(_TOP[name]), tensor.dtype))
        return
    _, _, layer, part = name.split(".", 3)
    if part in _LAYER:
        tensor.copy_(to_tensor(source.read(f"layers.{layer}.{_LAYER[part]}"), tensor.dtype))
        return
    inner = source.config.moe_inner_size
    places = {"mlp.experts.gate_up_proj": {"w1": 0, "w3": inner}, "mlp.experts.down_proj": {"w2": 0}}[part]
    for expert in range(source.config.num_experts):
        for matrix, row in places.items():
            weight = to_tensor(
                source.read(f"layers.{layer}.ffn.experts.{expert}.{matrix}.weight"), tensor.dtype
            )
            tensor[expert, row : row + weight.shape[0]] = weight


def reference_config(config: ModelConfig) -> dict[str, Any]:
    """Arguments of `DeepseekV4Config` for a configuration."""
    share = config.rope_head_dim / config.head_dim
    compress: dict[str, Any] = {
        "rope_type": "default",
        "rope_theta": config.compress_rope_theta,
        "partial_rotary_factor": share,
    }
    if config.yarn is not None:
        compress |= {
            "rope_type": "yarn",
            "factor": config.yarn.factor,
            "original_max_position_embeddings": config.yarn.original_length,
            "beta_fast": config.yarn.beta_fast,
            "beta_slow": config.yarn.beta_slow,
            "attention_factor": 1.0,
        }
    rates = {
        _KINDS[kind]: ratio
        for kind, ratio in zip(config.layer_kinds, config.compress_ratios, strict=True)
        if ratio
    }
    hashed = config.num_hash_layers
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "moe_intermediate_size": config.moe_inner_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "head_dim": config.head_dim,
        "q_lora_rank": config.q_lora_rank,
        "num_experts_per_tok": config.experts_per_token,
        "n_routed_experts": config.num_experts,
        "n_shared_experts": config.num_shared_experts,
        "routed_scaling_factor": config.routed_scaling_factor,
        # The reference warns of a length that is not the stretched one; its arithmetic does not use it.
        "max_position_embeddings": config.max_position
        if config.yarn is None
        else int(config.yarn.factor * config.yarn.original_length),
        "rope_theta": config.rope_theta,
        "layer_types": [_KINDS[kind] for kind in config.layer_kinds],
        "compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128} | rates,
        "compress_rope_theta": config.compress_rope_theta,
        "hc_mult": config.hc_mult,
        "hc_sinkhorn_iters": config.sinkhorn_rounds,
        "hc_eps": config.hc_eps,
        "mlp_layer_types": ["hash_moe"] * hashed + ["moe"] * (config.num_layers - hashed),
        "swiglu_limit": config.swiglu_limit,
        "sliding_window": config.window,
        "o_groups": config.o_groups,
        "o_lora_rank": config.o_lora_rank,
        "index_n_heads": config.index_heads,
        "index_head_dim": config.index_head_dim,
        "index_topk": config.index_topk,
        "rms_norm_eps": config.norm_eps,
        "partial_rotary_factor": share,
        "rope_parameters": {
            "main": {"rope_type": "default", "rope_theta": config.rope_theta, "partial_rotary_factor": share},
            "compress": compress,
        },
    }


def _streams_hook(record: LayerTrace) -> Any:
    def hook(module: Any, inputs: Any, output: Tensor) -> None:
        record.streams = output[0]

    return hook


def _router_hook(record: LayerTrace, bias: Tensor) -> Any:
    def hook(module: Any, inputs: Any, output: tuple[Tensor, Tensor, Tensor]) -> None:
        logits, _, chosen = output
        scores = torch.sqrt(torch.nn.functional.softplus(logits.float())) + bias
        record.experts.append(Choice(0, scores, chosen))

    return hook


def _scores_hook(kept: list[Tensor]) -> Any:
    def hook(module: Any, inputs: Any, output: Tensor) -> None:
        kept.append(output[0])

    return hook


def _blocks_hook(record: LayerTrace, scores: list[Tensor]) -> Any:
    def hook(module: Any, inputs: Any, output: Tensor) -> None:
        visible = (inputs[2][0] + 1) // module.compress_rate
        ranked = scores.pop()
        block = torch.arange(ranked.shape[1], device=ranked.device)
        record.blocks.append(Choice(0, ranked.masked_fill(block >= visible[:, None], -torch.inf), output[0]))

    return hook
