"""Small random DeepSeek-V4 models as `transformers` builds them, in float32: the oracle of the tests.

`transformers` initialises hash tables, sinks, position biases and router biases to zero, which would hide
mechanisms that are wrong; here every parameter is random and large enough to matter, while the residual
stream stays of the order of its embedding. `saved_models.save` writes them as checkpoints.
"""

import math
from typing import Any

import torch
from transformers import DeepseekV4Config, DeepseekV4ForCausalLM

# The starts of the two releases' layer patterns, with enough layers to contain every kind twice.
PATTERNS: dict[str, tuple[int, ...]] = {
    "pro": (128, 128, 4, 128, 4),
    "flash": (0, 0, 4, 128, 4),
}


def random_config(
    pattern: str | tuple[int, ...] = "pro",
    *,
    window: int = 16,
    index_topk: int = 5,
    index_heads: int = 32,
    hash_layers: int = 2,
    **overrides: Any,
) -> DeepseekV4Config:
    """A small configuration. `pattern`: "pro", "flash" or the ratios themselves (0, 4 or 128).

    Further `overrides` are `DeepseekV4Config` arguments. Every size is a multiple of 32, so that each matrix
    can be stored in every format. The clamp lies at 1.5 so that it cuts.
    """
    ratios = PATTERNS[pattern] if isinstance(pattern, str) else pattern
    values: dict[str, Any] = {
        "vocab_size": 160,
        "hidden_size": 64,
        "moe_intermediate_size": 32,
        "num_hidden_layers": len(ratios),
        "num_attention_heads": 4,
        "head_dim": 32,
        "qk_rope_head_dim": 8,
        "q_lora_rank": 32,
        "o_groups": 2,
        "o_lora_rank": 32,
        "n_routed_experts": 8,
        "num_experts_per_tok": 3,
        "routed_scaling_factor": 1.5,
        "swiglu_limit": 1.5,
        "index_n_heads": index_heads,
        "index_head_dim": 32,
        "index_topk": index_topk,
        "sliding_window": window,
        "compress_ratios": [*ratios, 0],
        "num_hash_layers": hash_layers,
        "num_nextn_predict_layers": 1,
        "max_position_embeddings": 65536,
        "rope_scaling": {
            "type": "yarn",
            "factor": 16,
            "original_max_position_embeddings": 4096,
            "beta_fast": 32,
            "beta_slow": 1,
        },
    }
    return DeepseekV4Config(**{**values, **overrides})


def random_model(
    pattern: str | tuple[int, ...] = "pro", *, seed: int = 0, **config: Any
) -> DeepseekV4ForCausalLM:
    """A float32 model in eval mode, random values in every parameter and table; same seed, same model.

    `config`: arguments of `random_config`. Experts run one by one ("eager"), so float64 works too.
    """
    model = DeepseekV4ForCausalLM(random_config(pattern, **config)).float().eval()
    model.set_experts_implementation("eager")
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            tensor.copy_(random_value(name, tuple(tensor.shape), model.config, generator))
    return model


def small_model(pattern: str | tuple[int, ...] = "flash", **config: Any) -> DeepseekV4ForCausalLM:
    """`random_model` with every kind of tensor in two layers: hash and scored routing, an indexer."""
    ratios = {"pro": (128, 4), "flash": (0, 4)}[pattern] if isinstance(pattern, str) else pattern
    return random_model(ratios, **{"hash_layers": 1, "n_routed_experts": 4, "index_head_dim": 16, **config})


def random_value(
    name: str, shape: tuple[int, ...], config: DeepseekV4Config, generator: torch.Generator
) -> torch.Tensor:
    """A random value for the parameter `name` (of `state_dict()`), scaled by its role."""

    def normal(deviation: float, mean: float = 0.0) -> torch.Tensor:
        return torch.randn(shape, generator=generator) * deviation + mean

    leaf = name.removesuffix(".weight").rsplit(".", 1)[-1]
    if leaf == "tid2eid":
        # Distinct experts for each token id, as a router would choose them.
        ranks = torch.rand((shape[0], config.n_routed_experts), generator=generator)
        return ranks.argsort(dim=1)[:, : shape[1]]
    if leaf.endswith("norm") or "layernorm" in leaf:
        return normal(0.2, mean=1.0)
    if leaf in ("base", "hc_base"):
        return normal(0.5)
    if leaf in ("scale", "hc_scale"):
        return torch.rand(shape, generator=generator) + 0.5
    if leaf == "sinks":
        return normal(1.0)
    if leaf == "position_bias":
        return normal(0.5)
    if leaf == "e_score_correction_bias":
        return normal(0.3)
    if leaf == "embed_tokens":
        return normal(1.0)
    # Matrices keep unit variance; the two that write into the residual stream a little less.
    gain = 0.5 if leaf in ("o_b_proj", "down_proj") else 1.0
    return normal(gain / math.sqrt(shape[-1]))
