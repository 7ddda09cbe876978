"""The comparison finds what is wrong, tells rounding from mistakes, and says so on the command line."""

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from dsv4chat.cli import main
from dsv4chat.runtime.compare import (
    TOLERANCE,
    Run,
    closest,
    compare,
    run_model,
    run_reference,
)
from dsv4chat.runtime.reference import Reference, build_reference
from dsv4chat.runtime.trace import Choice, LayerTrace
from tests.support.memory_source import MemorySource, load, random_ids
from tests.support.random_models import random_model
from tests.support.saved_models import save


def test_the_reference_is_transformers_own_model() -> None:
    """Built from our reader's weights and configuration, it computes what the original computes."""
    for pattern in ("pro", "flash"):
        original = random_model(pattern, seed=41)
        rebuilt = build_reference(MemorySource(original))
        ids = random_ids(150, 160, 1)
        with torch.inference_mode():
            torch.testing.assert_close(rebuilt(ids[None]).logits, original(ids[None]).logits)
        state = original.state_dict()
        assert all(torch.equal(value, state[name]) for name, value in rebuilt.state_dict().items())


def test_equal_models_pass_in_any_chunks() -> None:
    theirs = random_model("pro", window=16, seed=42)
    model, reference = load(theirs), Reference(MemorySource(theirs))
    ids = random_ids(150, 160, 2)
    expected = run_reference(reference, ids)
    for chunks in ([150], [1, 100, 49]):
        result = compare(model.config, run_model(model, ids, chunks), expected)
        assert result.passes(TOLERANCE)
        assert result.compared == 150
        assert 0 < result.logits < TOLERANCE
        assert result.same_argmax
        assert result.first_over(TOLERANCE) is None
        assert [layer.kind for layer in result.layers] == ["hca", "hca", "csa", "hca", "csa"]
        assert all(0 < layer.difference < 1e-4 < layer.largest for layer in result.layers)


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("layers.0.attn.attn_sink", 0),
        ("layers.2.attn.compressor.ape", 2),
        ("layers.3.ffn.shared_experts.w2.weight", 3),
        ("layers.4.attn.indexer.wq_b.weight", 4),
        ("layers.4.hc_ffn_base", 4),
    ],
)
def test_a_wrong_weight_is_found_in_its_layer(name: str, layer: int) -> None:
    theirs = random_model("pro", window=16, seed=43)
    reference = Reference(MemorySource(theirs))
    with torch.no_grad():
        wrong = MemorySource(theirs).read(name)
        wrong += 0.05 * torch.randn(wrong.shape, generator=torch.Generator().manual_seed(0))
    model = load(theirs)
    ids = random_ids(150, 160, 3)
    result = compare(model.config, run_model(model, ids, [150]), run_reference(reference, ids))
    assert not result.passes(TOLERANCE)
    found = [turned.layer for turned in result.turned if not turned.explained]
    first = result.first_over(TOLERANCE)
    assert min(found if first is None else [*found, first]) == layer


def _runs(own: list[float], other: list[float]) -> tuple[Run, Run]:
    """Two tokens and one layer; the first token's scores are given, the second's differ by 1e-6."""
    runs = []
    for first, second in ((own, 0.3), (other, 0.3 + 1e-6)):
        scores = torch.tensor([first, [second, 2.0, 1.0]])
        chosen = scores.topk(2, dim=1).indices.sort(dim=1).values
        logits = torch.zeros(2, 4)
        logits[0] = float(chosen[0].sum())
        trace = LayerTrace(blocks=[], experts=[Choice(0, scores, chosen)], streams=torch.ones(2, 4, 8))
        runs.append(Run(logits, [trace]))
    return runs[0], runs[1]


def test_a_decision_closer_than_rounding_is_excused_and_what_follows_left_out() -> None:
    config = load(random_model("pro", seed=44)).config
    ours, theirs = _runs([1.0, 0.5000002, 0.5], [1.0, 0.5, 0.5000002])
    result = compare(config, ours, theirs)
    (turned,) = result.turned
    assert (turned.layer, turned.token, turned.what) == (0, 0, "experts")
    assert turned.margin == pytest.approx(2e-7, rel=0.5)
    assert turned.bound == pytest.approx(2e-6, rel=0.1)
    assert turned.explained
    assert result.compared == 0
    assert result.passes(TOLERANCE)
    assert closest(ours, theirs, 0) is not None


def test_a_decision_further_apart_than_rounding_is_a_mistake() -> None:
    config = load(random_model("pro", seed=44)).config
    ours, theirs = _runs([1.0, 0.6, 0.5], [1.0, 0.5, 0.6])
    result = compare(config, ours, theirs)
    assert not result.turned[0].explained
    assert not result.passes(TOLERANCE)
    assert closest(ours, theirs, 1) is None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compare") / "model"
    save(random_model("flash", window=16, seed=45), path, spelling="build", fmt="nvfp4-full")
    return path


def test_the_command_reports_layers_and_passes(folder: Path) -> None:
    result = CliRunner().invoke(main, ["compare", "--model", str(folder), "--length", "80", "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.output)
    assert report["passed"] is True
    assert report["first_layer_over"] is None
    assert len(report["prefill"]["layers"]) == 5
    assert 0 < report["prefill"]["logits"] < 1e-4
    assert 0 < report["decode"] < 1e-4


def test_the_command_fails_over_the_tolerance_and_names_the_layer(folder: Path) -> None:
    arguments = ["compare", "--model", str(folder), "--ids", "5, 9,12 80", "--chunk", "3"]
    result = CliRunner().invoke(main, [*arguments, "--tolerance", "1e-9"])
    assert result.exit_code == 3
    assert "first layer over 1e-09: 0" in result.output
    assert "NOT within" in result.output
    rounded = CliRunner().invoke(main, [*arguments, "--kv-dtype", "fp8"])
    assert rounded.exit_code == 3


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--model", "/nowhere"], 1, "no folder"),
        (["--ids", "999"], 1, "outside the model's vocabulary"),
        (["--ids", ""], 1, "at least one token id"),
        (["--ids", "a,b"], 2, "numbers with commas"),
        (["--prompt", "Hello"], 1, "tokenizer"),
        (["--prompt", "Hello", "--ids", "1"], 2, "not both"),
        (["--against", "vllm"], 2, "transformers"),
    ],
)
def test_bad_input_is_a_sentence(folder: Path, arguments: list[str], code: int, sentence: str) -> None:
    given = arguments if "--model" in arguments else ["--model", str(folder), *arguments]
    result = CliRunner().invoke(main, ["compare", *given])
    assert result.exit_code == code, result.output
    assert sentence in result.output
    assert "Traceback" not in result.output
