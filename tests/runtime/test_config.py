"""Every spelling of config.json gives the same ModelConfig; what cannot be run is refused in a sentence."""

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import DeepseekV4Config

from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.config_rope import Yarn
from dsv4chat.runtime.errors import ConfigError
from tests.support.model_configs import config_dict
from tests.support.random_models import random_config
from tests.support.releases import FLASH, PRO, SHARED


def test_the_pro_release_parses_to_its_sizes() -> None:
    config = ModelConfig.from_dict(PRO)
    assert (config.hidden_size, config.num_layers, config.vocab_size) == (7168, 61, 129280)
    assert (config.num_heads, config.head_dim, config.rope_head_dim, config.q_lora_rank) == (
        128,
        512,
        64,
        1536,
    )
    assert (config.o_groups, config.o_lora_rank) == (16, 1024)
    assert (config.num_experts, config.experts_per_token, config.num_shared_experts) == (384, 6, 1)
    assert (config.moe_inner_size, config.routed_scaling_factor, config.swiglu_limit) == (3072, 2.5, 10.0)
    assert [config.is_hash_layer(layer) for layer in range(5)] == [True, True, True, False, False]
    assert [config.layer_kind(layer) for layer in (0, 1, 2, 3, 59, 60)] == [
        "hca",
        "hca",
        "csa",
        "hca",
        "hca",
        "csa",
    ]
    assert config.compress_ratios[:4] == (128, 128, 4, 128)
    assert len(config.compress_ratios) == 61
    assert (config.mtp_compress_ratios, config.num_mtp_layers, config.drafter) == ((0,), 1, "mtp")
    assert (config.window, config.index_heads, config.index_head_dim, config.index_topk) == (
        128,
        64,
        128,
        1024,
    )
    assert (config.hc_mult, config.sinkhorn_rounds, config.hc_eps, config.norm_eps) == (4, 20, 1e-6, 1e-6)
    assert (config.rope_theta, config.compress_rope_theta) == (10000.0, 160000.0)
    assert config.yarn == Yarn(factor=16.0, original_length=65536, beta_fast=32.0, beta_slow=1.0)
    assert (config.bos_id, config.eos_id, config.max_position) == (0, 1, 1048576)
    assert config.prompt_profile is None


def test_the_flash_release_starts_with_two_window_layers() -> None:
    config = ModelConfig.from_dict(FLASH)
    assert (config.hidden_size, config.num_layers, config.num_heads, config.o_groups) == (4096, 43, 64, 8)
    kinds = [config.layer_kind(layer) for layer in range(43)]
    assert kinds == ["window", "window", *["csa", "hca"] * 20, "csa"]
    assert (config.num_experts, config.moe_inner_size, config.index_topk) == (256, 2048, 512)


@pytest.mark.parametrize("release", [PRO, FLASH], ids=["pro", "flash"])
def test_all_spellings_of_a_release_are_equal(release: dict[str, Any]) -> None:
    # transformers' own conversion of the native keys is the other source here.
    converted = DeepseekV4Config(**release)
    native = ModelConfig.from_dict(release)
    assert ModelConfig.from_dict(converted.to_dict()) == native
    short = config_dict(converted, "short")
    assert "hidden_size" not in short
    assert "hc_eps" not in short
    assert ModelConfig.from_dict(short) == native


@pytest.mark.parametrize("pattern", ["pro", "flash"])
def test_a_saved_transformers_config_equals_the_native_one(pattern: str, tmp_path: Path) -> None:
    config = random_config(pattern)
    config.save_pretrained(tmp_path)
    assert ModelConfig.from_folder(tmp_path) == ModelConfig.from_dict(config_dict(config, "native"))


def hf(**changes: Any) -> dict[str, Any]:
    return {**config_dict(random_config("pro"), "hf"), **changes}


def test_either_name_of_each_alternative_is_enough() -> None:
    wanted = ModelConfig.from_dict(hf())
    for key in ("partial_rotary_factor", "qk_rope_head_dim"):
        config = hf()
        del config[key]
        assert ModelConfig.from_dict(config) == wanted
    # Only inside rope_parameters.
    config = hf()
    del config["partial_rotary_factor"], config["qk_rope_head_dim"]
    assert ModelConfig.from_dict(config) == wanted
    # A flat rope_parameters, as older conversions write it.
    yarn = {k: v for k, v in hf()["rope_parameters"]["compress"].items() if k not in ("rope_theta", "type")}
    assert ModelConfig.from_dict(hf(rope_parameters=yarn)) == wanted
    assert ModelConfig.from_dict(hf(compress_rates=None)) == wanted


def test_other_compress_rates_keep_their_kind() -> None:
    rates = {"compressed_sparse_attention": 8, "heavily_compressed_attention": 32}
    config = ModelConfig.from_dict(hf(compress_rates=rates))
    assert config.layer_kinds == ("hca", "hca", "csa", "hca", "csa")
    assert config.compress_ratios == (32, 32, 8, 32, 8)


def test_a_model_without_yarn_needs_no_scaling_keys() -> None:
    config = {**config_dict(random_config("pro"), "native"), "rope_scaling": None}
    assert ModelConfig.from_dict(config).yarn is None
    short = {**config_dict(random_config("pro"), "short"), "original_seq_len": 0, "max_seq_len": 4096}
    assert ModelConfig.from_dict(short).yarn is None
    assert ModelConfig.from_dict(short).max_position == 4096
    default = {"rope_type": "default", "rope_theta": 160000.0}
    rope = {"main": {"rope_type": "default", "rope_theta": 10000.0}, "compress": default}
    assert ModelConfig.from_dict(hf(rope_parameters=rope)).yarn is None


def test_unknown_keys_and_a_later_drafter_do_not_disturb() -> None:
    later = {
        **PRO,
        "dspark_block_size": 5,
        "dspark_target_layer_ids": [58, 59, 60],
        "some_new_key": {"a": [1]},
    }
    later["compress_ratios"] = [*PRO["compress_ratios"], 0, 0]
    config = ModelConfig.from_dict(later)
    assert config.drafter == "dspark"
    assert config.compress_ratios == ModelConfig.from_dict(PRO).compress_ratios


def test_the_quantisation_settings_decide_nothing() -> None:
    nvfp4 = {**PRO, "quantization_config": {"quant_method": "fp8", "moe_quant_algo": "NVFP4"}}
    assert ModelConfig.from_dict(nvfp4) == ModelConfig.from_dict(PRO)


def test_the_prompt_profile_is_kept() -> None:
    assert ModelConfig.from_dict({**PRO, "prompt_profile": "preview"}).prompt_profile == "preview"


def test_the_first_of_several_end_tokens_counts() -> None:
    assert ModelConfig.from_dict({**PRO, "eos_token_id": [1, 128803]}).eos_id == 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model_type": "deepseek_v3"}, "type 'deepseek_v3'; this runtime runs 'deepseek_v4'"),
        ({"model_type": None, "architectures": ["LlamaForCausalLM"]}, "LlamaForCausalLM"),
        ({"scoring_func": "softmax"}, "scoring_func.*'softmax'.*'sqrtsoftplus' only"),
        ({"hidden_act": "gelu"}, "hidden_act.*'gelu'"),
        ({"norm_topk_prob": False}, "norm_topk_prob"),
        ({"num_key_value_heads": 8}, "num_key_value_heads"),
        ({"tie_word_embeddings": True}, "tie_word_embeddings"),
        ({"attention_bias": True}, "attention_bias"),
        ({"n_shared_experts": 2}, "2 shared experts"),
        ({"compress_ratios": [1, 2] * 31}, "another architecture"),
        ({"compress_ratios": [128, 4]}, "2 entries for 61 layers"),
        ({"compress_ratios": "4"}, "list of whole numbers"),
        ({"compress_ratios": None}, "lacks `compress_ratios`"),
        ({"hidden_size": None}, "lacks `hidden_size` / `dim`"),
        ({"hidden_size": "big"}, "whole number >= 1.*'big'"),
        ({"hidden_size": True}, "whole number >= 1"),
        ({"num_hidden_layers": 0}, "whole number >= 1"),
        ({"hidden_size": 7168, "dim": 4096}, "`hidden_size` and `dim` of config.json disagree"),
        ({"routed_scaling_factor": -1}, "above 0"),
        ({"swiglu_limit": float("nan")}, "above 0"),
        ({"num_hash_layers": -1}, "whole number >= 0"),
        ({"qk_rope_head_dim": None}, "neither `qk_rope_head_dim` nor `partial_rotary_factor`"),
        ({"qk_rope_head_dim": 63}, "must be even"),
        ({"qk_rope_head_dim": 256}, "at most 128"),
        ({"o_groups": 7}, "128 heads do not split"),
        ({"num_experts_per_tok": 500}, "only 384 experts"),
        ({"eos_token_id": 129280}, "outside the vocabulary"),
        ({"eos_token_id": "end"}, "must be a token id"),
        ({"prompt_profile": 3}, "must be a text"),
        ({"rope_scaling": {"type": "linear", "factor": 2}}, "rotary scaling 'linear'"),
        ({"rope_scaling": {"type": "yarn", "factor": 2}}, "original_max_position_embeddings"),
        ({"rope_scaling": [1]}, "must be an object"),
        ({"rope_scaling": {**SHARED["rope_scaling"], "attention_factor": 1.3}}, "attention_factor"),
    ],
)
def test_what_cannot_be_run_is_refused_in_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        ModelConfig.from_dict({**PRO, **changes})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"layer_types": ["full_attention"] * 5}, "full_attention; known are"),
        ({"layer_types": ["sliding_attention"]}, "one entry for each of the 5 layers"),
        ({"mlp_layer_types": ["moe", "hash_moe", "moe", "moe", "moe"]}, "hash layers must come first"),
        ({"mlp_layer_types": ["dense"] * 5}, "one of hash_moe and moe"),
        ({"compress_rates": {"compressed_sparse_attention": 0}}, "positive numbers"),
        ({"compress_ratios": [4, 4, 4, 4, 4]}, "disagree"),
        ({"rope_parameters": {"compress": {}}}, "no `main`"),
        (
            {"rope_parameters": {"main": {"rope_type": "yarn"}, "compress": {}}},
            "scales `compress` only",
        ),
    ],
)
def test_contradictions_in_the_transformers_spelling_are_refused(
    changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        ModelConfig.from_dict(hf(**changes))


def test_a_folder_without_a_readable_config_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no folder .*absent"):
        ModelConfig.from_folder(tmp_path / "absent")
    with pytest.raises(ConfigError, match=r"holds no config\.json"):
        ModelConfig.from_folder(tmp_path)
    path = tmp_path / "config.json"
    path.write_text("{nonsense")
    with pytest.raises(ConfigError, match="not valid JSON"):
        ModelConfig.from_folder(tmp_path)
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(ConfigError, match="not valid JSON"):
        ModelConfig.from_folder(tmp_path)
    path.write_text("[1, 2]")
    with pytest.raises(ConfigError, match="JSON object"):
        ModelConfig.from_folder(tmp_path)
    path.write_text("{}")
    with pytest.raises(ConfigError, match="no model type"):
        ModelConfig.from_folder(tmp_path)
    with pytest.raises(ConfigError, match="is a file"):
        ModelConfig.from_folder(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        ModelConfig.from_folder(tmp_path)


def test_every_error_is_one_sentence_without_a_line_break() -> None:
    with pytest.raises(ConfigError) as caught:
        ModelConfig.from_dict({**PRO, "rope_theta": "x"})
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_config_json_reads_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(FLASH), encoding="utf-8")
    assert ModelConfig.from_folder(tmp_path) == ModelConfig.from_dict(FLASH)
