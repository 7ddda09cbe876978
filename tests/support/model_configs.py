"""One configuration in each spelling of config.json."""

from typing import Any

from transformers import DeepseekV4Config

RATIOS = {"sliding_attention": 0, "compressed_sparse_attention": 4, "heavily_compressed_attention": 128}


def config_dict(config: DeepseekV4Config, spelling: str) -> dict[str, Any]:
    """config.json of `config`; spelling: "native" (the releases), "short" (inference code) or "hf"."""
    if spelling == "hf":
        return {**config.to_dict(), "architectures": ["DeepseekV4ForCausalLM"]}
    yarn = config.rope_parameters["compress"]
    ratios = [RATIOS[kind] for kind in config.layer_types] + [0] * config.num_nextn_predict_layers
    same = {
        key: getattr(config, key)
        for key in (
            *("vocab_size", "head_dim", "q_lora_rank", "o_groups", "o_lora_rank", "n_routed_experts"),
            *("n_shared_experts", "swiglu_limit", "index_n_heads", "index_head_dim", "index_topk", "hc_mult"),
            *("hc_sinkhorn_iters", "rope_theta", "compress_rope_theta"),
        )
    }
    if spelling == "short":
        return {
            **same,
            "dim": config.hidden_size,
            "n_layers": config.num_hidden_layers,
            "n_heads": config.num_attention_heads,
            "rope_head_dim": config.qk_rope_head_dim,
            "moe_inter_dim": config.moe_intermediate_size,
            "n_activated_experts": config.num_experts_per_tok,
            "route_scale": config.routed_scaling_factor,
            "score_func": config.scoring_func,
            "n_hash_layers": config.mlp_layer_types.count("hash_moe"),
            "n_mtp_layers": config.num_nextn_predict_layers,
            "window_size": config.sliding_window,
            "compress_ratios": ratios,
            "original_seq_len": yarn["original_max_position_embeddings"],
            "rope_factor": yarn["factor"],
            "beta_fast": yarn["beta_fast"],
            "beta_slow": yarn["beta_slow"],
            "dtype": "fp8",
            "scale_fmt": "ue8m0",
            "expert_dtype": "fp4",
        }
    return {
        **same,
        "architectures": ["DeepseekV4ForCausalLM"],
        "model_type": "deepseek_v4",
        "bos_token_id": config.bos_token_id,
        "eos_token_id": config.eos_token_id,
        "hidden_act": "silu",
        "hidden_size": config.hidden_size,
        "num_hidden_layers": config.num_hidden_layers,
        "num_attention_heads": config.num_attention_heads,
        "num_key_value_heads": 1,
        "qk_rope_head_dim": config.qk_rope_head_dim,
        "moe_intermediate_size": config.moe_intermediate_size,
        "num_experts_per_tok": config.num_experts_per_tok,
        "norm_topk_prob": True,
        "topk_method": "noaux_tc",
        "routed_scaling_factor": config.routed_scaling_factor,
        "scoring_func": config.scoring_func,
        "num_hash_layers": config.mlp_layer_types.count("hash_moe"),
        "num_nextn_predict_layers": config.num_nextn_predict_layers,
        "sliding_window": config.sliding_window,
        "compress_ratios": ratios,
        "hc_eps": config.hc_eps,
        "rms_norm_eps": config.rms_norm_eps,
        "max_position_embeddings": config.max_position_embeddings,
        "rope_scaling": {
            "type": "yarn",
            "factor": yarn["factor"],
            "original_max_position_embeddings": yarn["original_max_position_embeddings"],
            "beta_fast": yarn["beta_fast"],
            "beta_slow": yarn["beta_slow"],
        },
        "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]},
        "expert_dtype": "fp4",
    }
