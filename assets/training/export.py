"""From trained weights to a checkpoint: native names, NVFP4 matrices, bf16 and f32 for the rest,
config.json.
"""

from pathlib import Path

import torch
from torch import Tensor

from dsv4chat.assets.training.model import TrainableModel
from dsv4chat.assets.training.parameters import FOUR_BIT, HEAD_NAMES, LAYER_NAMES
from dsv4chat.assets.training.rounding import matrix_scale
from dsv4chat.kernels.formats import NVFP4Weight, Weight
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.writer import write_checkpoint

SHARD_BYTES = 12_000_000
_EXPERT_PARTS = {"w13": ("w1", "w3"), "w2": ("w2",)}
# Kept in f32; every other tensor that is not NVFP4 is stored in bf16.
_WIDE = ("hc_fn", "hc_base", "hc_scale", "ape", "attn_sink", "gate_bias")


def demo_config(*, max_position: int) -> dict[str, object]:
    """config.json of the demo model in DeepSeek's spelling."""
    return {
        "architectures": ["DeepseekV4ForCausalLM"],
        "model_type": "deepseek_v4",
        "model_name": "dsv4chat demo",
        "prompt_profile": "preview",
        "vocab_size": 8192,
        "hidden_size": 256,
        "num_hidden_layers": 8,
        "compress_ratios": [128, 128, 4, 128, 4, 128, 4, 4],
        "num_hash_layers": 2,
        "num_nextn_predict_layers": 0,
        "num_attention_heads": 8,
        "num_key_value_heads": 1,
        "head_dim": 64,
        "qk_rope_head_dim": 16,
        "q_lora_rank": 128,
        "o_groups": 8,
        "o_lora_rank": 64,
        "sliding_window": 128,
        "index_n_heads": 8,
        "index_head_dim": 32,
        "index_topk": 64,
        "n_routed_experts": 16,
        "num_experts_per_tok": 4,
        "n_shared_experts": 1,
        "moe_intermediate_size": 128,
        "routed_scaling_factor": 1.5,
        "scoring_func": "sqrtsoftplus",
        "norm_topk_prob": True,
        "topk_method": "noaux_tc",
        "hidden_act": "silu",
        "swiglu_limit": 10.0,
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
        "max_position_embeddings": max_position,
        "attention_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 2,
        "torch_dtype": "bfloat16",
    }


def smoke_config(*, max_position: int) -> dict[str, object]:
    """The same mechanisms in a model small enough to train on a CPU for a few steps."""
    small = {
        "model_name": "dsv4chat smoke test",
        "hidden_size": 64,
        "num_hidden_layers": 4,
        "compress_ratios": [128, 4, 128, 4],
        "num_hash_layers": 1,
        "num_attention_heads": 4,
        "head_dim": 32,
        "qk_rope_head_dim": 8,
        "q_lora_rank": 32,
        "o_groups": 4,
        "o_lora_rank": 32,
        "index_topk": 16,
        "n_routed_experts": 8,
        "moe_intermediate_size": 32,
    }
    return demo_config(max_position=max_position) | small


def matrices(name: str, tensor: Tensor) -> dict[str, Tensor]:
    """The checkpoint's matrices in a layer's tensor, by name after "layers.N."; experts are taken apart."""
    if name not in _EXPERT_PARTS:
        return {LAYER_NAMES[name]: tensor}
    parts = _EXPERT_PARTS[name]
    found = {}
    for part, stack in zip(parts, tensor if len(parts) == 2 else (tensor,), strict=True):
        for expert, matrix in enumerate(stack):
            owner = f"experts.{expert}" if expert < len(stack) - 1 else "shared_experts"
            found[f"ffn.{owner}.{part}.weight"] = matrix
    return found


def checkpoint_tensors(
    model: TrainableModel, masters: dict[str, Tensor], *, four_bit: bool = True
) -> dict[str, Weight]:
    """Every tensor of the checkpoint by its native name.

    masters: f32 values of the NVFP4 parameters, keyed "layer.name" (see `Optimizer.masters`); without
    `four_bit` they are stored in bf16 like the rest.
    """
    tensors: dict[str, Weight] = {}
    for name, native in HEAD_NAMES.items():
        tensors[native] = _stored(name, model.outer[name].detach())
    for i, layer in enumerate(model.layers):
        for name, parameter in layer.items():
            value = masters.get(f"{i}.{name}", parameter.detach()).detach()
            for native, matrix in matrices(name, value).items():
                four = four_bit and name in FOUR_BIT
                tensors[f"layers.{i}.{native}"] = _four_bit(matrix) if four else _stored(name, matrix)
        if model.config.is_hash_layer(i):
            tensors[f"layers.{i}.{LAYER_NAMES['hash_table']}"] = model.hash_tables[i].detach().cpu()
        else:
            tensors[f"layers.{i}.{LAYER_NAMES['gate_bias']}"] = _stored("gate_bias", model.gate_bias[i])
    return tensors


def export(
    folder: Path,
    config: dict[str, object],
    model: TrainableModel,
    masters: dict[str, Tensor],
) -> None:
    """Write the model as a sharded NVFP4 checkpoint with index and config.json (without the tokenizer)."""
    folder.mkdir(parents=True, exist_ok=True)
    write_checkpoint(folder, config, checkpoint_tensors(model, masters), shard_bytes=SHARD_BYTES)


@torch.no_grad()
def load_values(model: TrainableModel, values: dict[str, Tensor]) -> None:
    """Set the model's weights from dequantised checkpoint tensors (native names, any float dtype)."""
    for name, native in HEAD_NAMES.items():
        model.outer[name].copy_(values[native])
    for i, layer in enumerate(model.layers):
        for name, parameter in layer.items():
            for native, target in matrices(name, parameter).items():
                target.copy_(values[f"layers.{i}.{native}"])
        if model.config.is_hash_layer(i):
            model.hash_tables[i].copy_(values[f"layers.{i}.{LAYER_NAMES['hash_table']}"])
        else:
            model.gate_bias[i].copy_(values[f"layers.{i}.{LAYER_NAMES['gate_bias']}"])


def read_config(config: dict[str, object]) -> ModelConfig:
    """The runtime's view of a config.json."""
    return ModelConfig.from_dict(config)


def _stored(name: str, tensor: Tensor) -> Tensor:
    wide = name.endswith(_WIDE)
    return tensor.float().cpu().contiguous() if wide else tensor.bfloat16().cpu().contiguous()


def _four_bit(matrix: Tensor) -> NVFP4Weight:
    matrix = matrix.float().cpu().contiguous()
    return NVFP4Weight.quantize(matrix, scale_2=float(matrix_scale(matrix.abs().amax())))
