"""The decode benchmark, on a random model of the demo model's size and on the command line."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from transformers import DeepseekV4ForCausalLM

from dsv4chat.cli import main
from dsv4chat.runtime.benchmark import decode_benchmark, stepping
from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.errors import EngineError
from dsv4chat.runtime.gpu.step import DecodeStep
from tests.support.memory_source import CPU, MemorySource, load, random_ids
from tests.support.random_models import random_model
from tests.support.saved_models import save

# The demo model's shape, with random weights.
DEMO = {
    "window": 128,
    "index_topk": 64,
    "index_heads": 8,
    "vocab_size": 8192,
    "hidden_size": 256,
    "moe_intermediate_size": 128,
    "num_attention_heads": 8,
    "head_dim": 64,
    "qk_rope_head_dim": 16,
    "q_lora_rank": 128,
    "o_groups": 8,
    "o_lora_rank": 64,
    "n_routed_experts": 16,
    "num_experts_per_tok": 4,
    "swiglu_limit": 10.0,
}


def demo_sized() -> DeepseekV4ForCausalLM:
    return random_model((128, 128, 4, 128, 4, 128, 4, 4), **DEMO)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "model"
    save(random_model("pro"), path)
    return path


def test_decoding_is_at_least_twice_as_fast_as_transformers() -> None:
    result = decode_benchmark(MemorySource(demo_sized()), tokens=48, prompt=280, against=True)
    assert result.against is not None
    assert result.ratio is not None
    print(f"{result.ours.decode:.0f} tokens/s, transformers {result.against.decode:.0f}")
    assert result.ratio >= 2
    assert (result.dtype, result.kv_dtype) == ("float32", "fp8")


def test_the_command_prints_both_medians_and_their_ratio(folder: Path) -> None:
    arguments = ["bench", "decode", "--model", str(folder), "--tokens", "5", "--prompt", "10"]
    both = CliRunner().invoke(main, [*arguments, "--against", "transformers", "--json"])
    assert both.exit_code == 0, both.output
    figures = json.loads(both.output)
    assert figures["tokens"] == 5
    assert figures["ratio"] == pytest.approx(figures["ours"]["decode"] / figures["against"]["decode"])
    assert figures["ours"]["decode_ms"] == pytest.approx(1000 / figures["ours"]["decode"])
    alone = CliRunner().invoke(main, arguments)
    assert alone.exit_code == 0
    assert "dsv4chat" in alone.output
    assert "transformers " not in alone.output


def test_bad_input_is_a_sentence(folder: Path) -> None:
    wrong = CliRunner().invoke(main, ["bench", "decode", "--model", "/nowhere"])
    assert wrong.exit_code == 1
    assert "no folder" in wrong.output
    assert CliRunner().invoke(main, ["bench", "decode", "--tokens", "0"]).exit_code == 2
    with pytest.raises(EngineError, match="at least one token"):
        decode_benchmark(MemorySource(random_model("pro")), tokens=0)
    with pytest.raises(EngineError, match="kv_dtype"):
        decode_benchmark(MemorySource(random_model("pro")), kv_dtype="int4")


def test_the_devices_own_step_continues_as_the_model_does() -> None:
    model = load(random_model("pro", seed=3))
    ids = random_ids(30, 160, 3)
    fed, expected = ids, []
    cache = KVCache(model.config, "float32", 60, CPU)
    for _ in range(20):
        fed = model.forward(fed, cache).logits[-1].argmax()[None]
        expected.append(int(fed))
    feed = stepping(DecodeStep(model), KVCache(model.config, "float32", 60, CPU))
    fed, got = ids, []
    for _ in range(20):
        fed = feed(fed)
        got.append(int(fed))
    assert got == expected
