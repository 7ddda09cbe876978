"""The trainable model computes what DeepSeek-V4 computes, document by document, and trains all of itself."""

import numpy as np
import pytest
import torch
from transformers import DeepseekV4Config, DeepseekV4ForCausalLM

from dsv4chat.assets.training.model import TrainableModel
from dsv4chat.assets.training.packing import Documents, build
from dsv4chat.assets.training.parameters import HEAD_NAMES
from dsv4chat.runtime.config import ModelConfig

RATIOS = [128, 128, 4, 128, 4, 4]
VOCAB = 96


def small_config(index_topk: int = 8) -> dict:
    """The demo model's pattern with small sizes, in DeepSeek's spelling; 32 index heads, so that no scores
    tie.
    """
    return {
        "model_type": "deepseek_v4",
        "vocab_size": VOCAB,
        "hidden_size": 48,
        "num_hidden_layers": len(RATIOS),
        "compress_ratios": RATIOS,
        "num_hash_layers": 2,
        "num_attention_heads": 4,
        "head_dim": 32,
        "qk_rope_head_dim": 8,
        "q_lora_rank": 32,
        "o_groups": 2,
        "o_lora_rank": 16,
        "n_routed_experts": 8,
        "num_experts_per_tok": 3,
        "n_shared_experts": 1,
        "moe_intermediate_size": 32,
        "routed_scaling_factor": 1.5,
        "sliding_window": 64,
        "index_n_heads": 32,
        "index_head_dim": 16,
        "index_topk": index_topk,
        "swiglu_limit": 1.0,
        "rope_theta": 10000.0,
        "compress_rope_theta": 160000.0,
        "rope_scaling": {
            "rope_type": "yarn",
            "factor": 16.0,
            "original_max_position_embeddings": 65536,
            "beta_fast": 32,
            "beta_slow": 1,
        },
        "max_position_embeddings": 1048576,
        "num_nextn_predict_layers": 0,
    }


def random_model(row_length: int, index_topk: int = 8) -> TrainableModel:
    config = ModelConfig.from_dict(small_config(index_topk))
    model = TrainableModel(config, row_length=row_length, seed=3)
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
        model.gate_bias.normal_(0, 0.2, generator=generator)
    return model


def hugging_face(model: TrainableModel, index_topk: int = 8) -> DeepseekV4ForCausalLM:
    """The same weights in the `transformers` model."""
    config = small_config(index_topk)
    config["rope_parameters"] = config.pop("rope_scaling")
    reference = DeepseekV4ForCausalLM(DeepseekV4Config(**config, attn_implementation="eager")).eval()
    state = reference.state_dict()
    plain = {
        "embedding": "model.embed_tokens.weight",
        "head": "lm_head.weight",
        "norm": "model.norm.weight",
        "head_hc_fn": "model.hc_head.hc_fn",
        "head_hc_base": "model.hc_head.hc_base",
        "head_hc_scale": "model.hc_head.hc_scale",
    }
    assert set(plain) == set(HEAD_NAMES)
    copied = {name: model.outer[ours].data for ours, name in plain.items()}
    compressor = {
        "ape": "position_bias",
        "norm": "kv_norm.weight",
        "wkv": "kv_proj.weight",
        "wgate": "gate_proj.weight",
    }
    names = {
        "attn_norm": "input_layernorm.weight",
        "ffn_norm": "post_attention_layernorm.weight",
        "q_norm": "self_attn.q_a_norm.weight",
        "kv_norm": "self_attn.kv_norm.weight",
        "wq_a": "self_attn.q_a_proj.weight",
        "wq_b": "self_attn.q_b_proj.weight",
        "wkv": "self_attn.kv_proj.weight",
        "wo_a": "self_attn.o_a_proj.weight",
        "wo_b": "self_attn.o_b_proj.weight",
        "attn_sink": "self_attn.sinks",
        "indexer_wq_b": "self_attn.compressor.indexer.q_b_proj.weight",
        "indexer_weights_proj": "self_attn.compressor.indexer.scorer.weights_proj.weight",
        "gate": "mlp.gate.weight",
    }
    names |= {f"compressor_{ours}": f"self_attn.compressor.{name}" for ours, name in compressor.items()}
    names |= {
        f"indexer_compressor_{ours}": f"self_attn.compressor.indexer.{name}"
        for ours, name in compressor.items()
    }
    for part in ("attn", "ffn"):
        names |= {f"{part}_hc_{piece}": f"{part}_hc.{piece}" for piece in ("fn", "base", "scale")}
    for i, layer in enumerate(model.layers):
        at = f"model.layers.{i}."
        for ours, tensor in layer.items():
            if ours in names:
                copied[at + names[ours]] = tensor.data
        w1, w3 = layer["w13"].data
        w2 = layer["w2"].data
        copied[at + "mlp.experts.gate_up_proj"] = torch.cat((w1[:-1], w3[:-1]), dim=1)
        copied[at + "mlp.experts.down_proj"] = w2[:-1]
        for name, tensor in (("gate_proj", w1[-1]), ("up_proj", w3[-1]), ("down_proj", w2[-1])):
            copied[f"{at}mlp.shared_experts.{name}.weight"] = tensor
        if model.config.is_hash_layer(i):
            copied[at + "mlp.gate.tid2eid"] = model.hash_tables[i].data.long()
        else:
            copied[at + "mlp.gate.e_score_correction_bias"] = model.gate_bias[i]
    assert set(copied) == set(state)
    reference.load_state_dict(copied)
    return reference


def documents(*sizes: int) -> Documents:
    numbers = np.random.default_rng(5).integers(0, VOCAB, sum(sizes))
    return Documents(numbers, np.cumsum([0, *sizes]))


def all_logits(
    model: TrainableModel, text: Documents, rows: list[list[int]], length: int, sparse: bool = True
):
    batch = build(text, rows, length, padding=2)
    with torch.no_grad():
        return model.logits(model.hidden(batch, sparse=sparse).x)


@pytest.mark.parametrize("size", [3, 130, 384, 509])
def test_one_document_gives_the_logits_of_transformers(size: int) -> None:
    model = random_model(512)
    text = documents(size)
    ours = all_logits(model, text, [[0]], 512)[0, :size]
    with torch.no_grad():
        theirs = hugging_face(model)(torch.from_numpy(text.ids)[None]).logits[0]
    assert (ours - theirs).abs().max() <= 1e-4


def test_dense_selection_is_an_index_topk_of_all_blocks() -> None:
    model = random_model(512)
    text = documents(500)
    ours = all_logits(model, text, [[0]], 512, sparse=False)[0, :500]
    with torch.no_grad():
        theirs = hugging_face(model, index_topk=1000)(torch.from_numpy(text.ids)[None]).logits[0]
    assert (ours - theirs).abs().max() <= 1e-4


def test_packed_documents_equal_the_documents_alone() -> None:
    model = random_model(768)
    sizes = (5, 261, 1, 130, 257, 66)
    text = documents(*sizes)
    packed = all_logits(model, text, [[0, 1, 2, 3, 4], [5, 3]], 768)
    at = 0
    for number in range(5):
        alone = all_logits(model, text, [[number]], 768)[0, : sizes[number]]
        assert (packed[0, at : at + sizes[number]] - alone).abs().max() <= 2e-5
        at += -(-sizes[number] // 4) * 4
    alone = all_logits(model, text, [[3]], 768)[0, :130]
    assert (packed[1, 68 : 68 + 130] - alone).abs().max() <= 2e-5


@pytest.mark.parametrize("sparse", [False, True])
def test_every_parameter_receives_a_gradient(sparse: bool) -> None:
    model = random_model(512)
    batch = build(documents(300, 200, 490), [[0, 1], [2]], 512, padding=2)
    loss, hidden = model.loss(batch, sparse=sparse)
    (loss + hidden.index_loss).backward()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, name
            assert torch.isfinite(parameter.grad).all(), name
            assert parameter.grad.abs().sum() > 0, name
