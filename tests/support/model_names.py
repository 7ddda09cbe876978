"""The names of a DeepSeek-V4 model's tensors in the spellings of its checkpoints, written out for the tests.

Everything is keyed by DeepSeek's native names, one tensor an expert matrix. `native_views` gives the
parameters of a `transformers` model under those names as views: writing to a view changes the model.
"""

import torch
from transformers import DeepseekV4Config, DeepseekV4ForCausalLM

TOP = {
    "embed.weight": "model.embed_tokens.weight",
    "head.weight": "lm_head.weight",
    "norm.weight": "model.norm.weight",
    "hc_head_fn": "model.hc_head.hc_fn",
    "hc_head_base": "model.hc_head.hc_base",
    "hc_head_scale": "model.hc_head.hc_scale",
}

LAYER = {
    "attn_norm.weight": "input_layernorm.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "attn.attn_sink": "self_attn.sinks",
    "attn.q_norm.weight": "self_attn.q_a_norm.weight",
    "attn.kv_norm.weight": "self_attn.kv_norm.weight",
    "attn.wq_a.weight": "self_attn.q_a_proj.weight",
    "attn.wq_b.weight": "self_attn.q_b_proj.weight",
    "attn.wkv.weight": "self_attn.kv_proj.weight",
    "attn.wo_a.weight": "self_attn.o_a_proj.weight",
    "attn.wo_b.weight": "self_attn.o_b_proj.weight",
    "attn.compressor.ape": "self_attn.compressor.position_bias",
    "attn.compressor.norm.weight": "self_attn.compressor.kv_norm.weight",
    "attn.compressor.wkv.weight": "self_attn.compressor.kv_proj.weight",
    "attn.compressor.wgate.weight": "self_attn.compressor.gate_proj.weight",
    "attn.indexer.wq_b.weight": "self_attn.compressor.indexer.q_b_proj.weight",
    "attn.indexer.weights_proj.weight": "self_attn.compressor.indexer.scorer.weights_proj.weight",
    "attn.indexer.compressor.ape": "self_attn.compressor.indexer.position_bias",
    "attn.indexer.compressor.norm.weight": "self_attn.compressor.indexer.kv_norm.weight",
    "attn.indexer.compressor.wkv.weight": "self_attn.compressor.indexer.kv_proj.weight",
    "attn.indexer.compressor.wgate.weight": "self_attn.compressor.indexer.gate_proj.weight",
    "ffn.gate.weight": "mlp.gate.weight",
    "ffn.gate.tid2eid": "mlp.gate.tid2eid",
    "ffn.gate.bias": "mlp.gate.e_score_correction_bias",
    "ffn.shared_experts.w1.weight": "mlp.shared_experts.gate_proj.weight",
    "ffn.shared_experts.w2.weight": "mlp.shared_experts.down_proj.weight",
    "ffn.shared_experts.w3.weight": "mlp.shared_experts.up_proj.weight",
    "hc_attn_fn": "attn_hc.fn",
    "hc_attn_base": "attn_hc.base",
    "hc_attn_scale": "attn_hc.scale",
    "hc_ffn_fn": "ffn_hc.fn",
    "hc_ffn_base": "ffn_hc.base",
    "hc_ffn_scale": "ffn_hc.scale",
}

EXPERT = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}


def native_views(model: DeepseekV4ForCausalLM) -> dict[str, torch.Tensor]:
    """Native name -> the model's own storage of it; fused expert tensors are cut into one view a matrix."""
    state = model.state_dict()
    inner = model.config.moe_intermediate_size
    views = {native: state[name] for native, name in TOP.items()}
    for layer in range(model.config.num_hidden_layers):
        for native, name in LAYER.items():
            if (full := f"model.layers.{layer}.{name}") in state:
                views[f"layers.{layer}.{native}"] = state[full]
        gate_up = state[f"model.layers.{layer}.mlp.experts.gate_up_proj"]
        down = state[f"model.layers.{layer}.mlp.experts.down_proj"]
        for expert in range(model.config.n_routed_experts):
            prefix = f"layers.{layer}.ffn.experts.{expert}"
            views[f"{prefix}.w1.weight"] = gate_up[expert, :inner]
            views[f"{prefix}.w3.weight"] = gate_up[expert, inner:]
            views[f"{prefix}.w2.weight"] = down[expert]
    return views


def mtp_shapes(config: DeepseekV4Config) -> dict[str, tuple[int, ...]]:
    """The drafting layer: a window-only, score-routed block and what feeds it and reads it."""
    hidden, inner, streams = config.hidden_size, config.moe_intermediate_size, config.hc_mult
    heads, dim = config.num_attention_heads, config.head_dim
    mix = (2 + streams) * streams
    shapes: dict[str, tuple[int, ...]] = {
        "attn_norm.weight": (hidden,),
        "ffn_norm.weight": (hidden,),
        "attn.attn_sink": (heads,),
        "attn.q_norm.weight": (config.q_lora_rank,),
        "attn.kv_norm.weight": (dim,),
        "attn.wq_a.weight": (config.q_lora_rank, hidden),
        "attn.wq_b.weight": (heads * dim, config.q_lora_rank),
        "attn.wkv.weight": (dim, hidden),
        "attn.wo_a.weight": (config.o_groups * config.o_lora_rank, heads * dim // config.o_groups),
        "attn.wo_b.weight": (hidden, config.o_groups * config.o_lora_rank),
        "ffn.gate.weight": (config.n_routed_experts, hidden),
        "ffn.gate.bias": (config.n_routed_experts,),
        "e_proj.weight": (hidden, hidden),
        "h_proj.weight": (hidden, hidden),
        "enorm.weight": (hidden,),
        "hnorm.weight": (hidden,),
        "norm.weight": (hidden,),
        "hc_head_fn": (streams, streams * hidden),
        "hc_head_base": (streams,),
        "hc_head_scale": (1,),
    }
    for place in ("attn", "ffn"):
        shapes[f"hc_{place}_fn"] = (mix, streams * hidden)
        shapes[f"hc_{place}_base"] = (mix,)
        shapes[f"hc_{place}_scale"] = (3,)
    owners = ["shared_experts", *(f"experts.{expert}" for expert in range(config.n_routed_experts))]
    for owner in owners:
        shapes[f"ffn.{owner}.w1.weight"] = (inner, hidden)
        shapes[f"ffn.{owner}.w2.weight"] = (hidden, inner)
        shapes[f"ffn.{owner}.w3.weight"] = (inner, hidden)
    return {f"mtp.0.{name}": shape for name, shape in shapes.items()}


def spell(native: str, spelling: str) -> str:
    """A native name in a spelling: "native", "hf" (state_dict), "mixture" (save_pretrained) or "build"."""
    if spelling == "native" or native.startswith("mtp."):
        return native
    if spelling == "mixture":
        if native in TOP:
            return native if native == "head.weight" else TOP[native]
        return "model." + native.replace(".attn.kv_norm.", ".attn.norm.")
    if native in TOP:
        return TOP[native]
    _, layer, rest = native.split(".", 2)
    if rest.startswith("ffn.experts."):
        _, _, expert, matrix, _ = rest.split(".")
        name = f"mlp.experts.{expert}.{EXPERT[matrix]}.weight"
    else:
        name = LAYER[rest]
    return f"model.layers.{layer}.{name.replace('.scorer.', '.') if spelling == 'build' else name}"
