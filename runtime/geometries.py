"""The sizes of the published models, for random weights of their shapes.

Values are those of the releases' config.json. A model of fewer layers has the first ones.
"""

import json
from typing import Any

from dsv4chat.assets import demo_path
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
}

_FIRST_RATIOS = {"flash": (0, 0), "pro": (128, 128)}
_LAYERS = {"flash": 43, "pro": 61}
GEOMETRIES = (*_SIZES, "demo")


def geometry(name: str, layers: int | None = None) -> ModelConfig:
    """The configuration of "flash", "pro" or "demo", with its first `layers` layers (default: all).

    Raises EngineError for another name or number.
    """
    if name not in GEOMETRIES:
        raise EngineError(f"There is no geometry {name!r}; choose {', '.join(GEOMETRIES)}.")
    values = _shipped() if name == "demo" else _published(name)
    ratios = values["compress_ratios"]
    count = len(ratios) if layers is None else layers
    if not 1 <= count <= len(ratios):
        raise EngineError(f"{name} has {len(ratios)} layers; choose 1 to {len(ratios)}, not {count}.")
    return ModelConfig.from_dict({**values, "num_hidden_layers": count, "compress_ratios": ratios[:count]})


def _published(name: str) -> dict[str, Any]:
    ratios = [*_FIRST_RATIOS[name], *(4 if i % 2 == 0 else 128 for i in range(2, _LAYERS[name]))]
    return {**_SAME, **_SIZES[name], "compress_ratios": ratios}


def _shipped() -> dict[str, Any]:
    """The demo model's own sizes, with room for the contexts that are measured."""
    values: dict[str, Any] = json.loads((demo_path() / "config.json").read_text("utf-8"))
    return values | {"max_position_embeddings": 65536}
