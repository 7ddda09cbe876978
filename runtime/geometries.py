"""The sizes of the published models, for random weights of their shapes.

Values are those of the releases' config.json. A model of fewer layers has the first ones.
"""

from typing import Any

from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.errors import EngineError

_SAME: dict[str, Any] = {
    "model_type": "deepseek_v4",
    "architectures": ["DeepseekV4ForCausalLM"],
    "vocab_size": 129280,
    "head_dim": 512,
    "qk_rope_head_dim": 64,
    "n_shared_experts": 1,
    "num_experts_per_tok": 6,
    "num_hash_layers": 3,
    "sliding_window": 128,
    "index_n_heads": 64,
    "index_head_dim": 128,
    "o_lora_rank": 1024,
    "hc_mult": 4,
    "hc_sinkhorn_iters": 20,
    "hc_eps": 1e-6,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "compress_rope_theta": 160000.0,
    "rope_scaling": {
        "type": "yarn",
        "factor": 16,
        "original_max_position_embeddings": 65536,
        "beta_fast": 32,
        "beta_slow": 1,
    },
    "max_position_embeddings": 1048576,
    "swiglu_limit": 10.0,
    "num_nextn_predict_layers": 0,
}

_SIZES: dict[str, dict[str, Any]] = {
    "flash": {
        "hidden_size": 4096,
        "num_attention_heads": 64,
        "q_lora_rank": 1024,
        "o_groups": 8,
        "n_routed_experts": 256,
        "moe_intermediate_size": 2048,
        "routed_scaling_factor": 1.5,
        "index_topk": 512,
    },
    "pro": {
        "hidden_size": 7168,
        "num_attention_heads": 128,
        "q_lora_rank": 1536,
        "o_groups": 16,
        "n_routed_experts": 384,
        "moe_intermediate_size": 3072,
        "routed_scaling_factor": 2.5,
        "index_topk": 1024,
    },
    # The demo model's own.
    "demo": {
        "vocab_size": 8192,
        "hidden_size": 256,
        "num_attention_heads": 8,
        "head_dim": 64,
        "qk_rope_head_dim": 16,
        "q_lora_rank": 128,
        "o_groups": 8,
        "o_lora_rank": 64,
        "n_routed_experts": 16,
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 128,
        "routed_scaling_factor": 1.5,
        "num_hash_layers": 2,
        "index_n_heads": 8,
        "index_head_dim": 32,
        "index_topk": 64,
        "max_position_embeddings": 65536,
    },
}

_FIRST_RATIOS = {"flash": (0, 0), "pro": (128, 128), "demo": (128, 128)}
NUM_LAYERS = {"flash": 43, "pro": 61, "demo": 8}
GEOMETRIES = tuple(_SIZES)


def geometry(name: str, layers: int | None = None) -> ModelConfig:
    """The configuration of "flash", "pro" or "demo", with its first `layers` layers (default: all).

    Raises EngineError for another name or number.
    """
    if name not in _SIZES:
        raise EngineError(f"There is no geometry {name!r}; choose {', '.join(GEOMETRIES)}.")
    count = NUM_LAYERS[name] if layers is None else layers
    if not 1 <= count <= NUM_LAYERS[name]:
        raise EngineError(
            f"{name} has {NUM_LAYERS[name]} layers; choose 1 to {NUM_LAYERS[name]}, not {count}."
        )
    ratios = [*_FIRST_RATIOS[name], *(4 if i % 2 == 0 else 128 for i in range(2, NUM_LAYERS[name]))]
    if name == "demo":
        ratios[-1] = 4
    return ModelConfig.from_dict(
        {**_SAME, **_SIZES[name], "num_hidden_layers": count, "compress_ratios": ratios[:count]}
    )
