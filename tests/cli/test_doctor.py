"""`dsv4chat doctor`: what it finds on the machine at hand and in folders that are good and damaged."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from dsv4chat.assets import demo_path
from dsv4chat.cli import main
from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.checkpoint import Checkpoint
from dsv4chat.runtime.doctor import GPU, Examination, Memory, _room
from tests.support.random_models import small_model
from tests.support.saved_models import save


def doctor(*arguments: str) -> tuple[int, dict]:
    result = CliRunner().invoke(main, ["doctor", "--json", *arguments])
    return result.exit_code, json.loads(result.output)


def test_the_demo_model_is_healthy_and_its_bytes_are_those_of_its_files() -> None:
    code, found = doctor("--max-context", "1000")
    assert code == 0
    assert found["healthy"]
    files = sum(path.stat().st_size for path in demo_path().glob("*.safetensors"))
    assert 0.95 * files < found["memory"]["weights"] == found["memory"]["rank"] <= files
    # What a cache that holds 1,000 tokens really takes in rings, open blocks and stored rows.
    config = Checkpoint.open(demo_path()).config
    cache = KVCache(config, "fp8", 1000, torch.device("cpu"))
    stored = cache.small_bytes
    for layer in cache.layers:
        for rows in (layer.blocks, layer.keys):
            if rows is not None:
                rows.hold(1000 // layer.ratio)
                stored += rows.stored.nbytes
    assert found["memory"]["cache"] == stored


def test_ranks_share_what_is_split_and_repeat_the_rest() -> None:
    sizes = [doctor("--gpus", str(gpus))[1]["memory"] for gpus in (1, 2, 4, 8)]
    whole = [2 * b["rank"] - a["rank"] for a, b in pairwise(sizes)]
    assert max(whole) - min(whole) <= 8  # rank = whole + split / n
    assert 0 < whole[0] < sizes[0]["rank"] / 2


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    saved = save(small_model(), tmp_path / "model")
    from safetensors.torch import load_file, save_file

    (file,) = saved.files
    tensors = load_file(file)
    del tensors["layers.1.attn.wq_b.weight"]
    save_file(tensors, file)
    code, found = doctor("--model", str(tmp_path / "model"))
    assert code == 1
    (problem,) = [finding for finding in found["findings"] if finding["level"] == "problem"]
    assert "layers.1.attn.wq_b.weight" in problem["text"]


def test_a_number_of_gpus_that_does_not_divide_the_heads_is_told() -> None:
    code, found = doctor("--gpus", "3")
    assert code == 1
    assert "do not split over 3 GPUs" in found["findings"][-1]["text"]


@pytest.mark.parametrize(("free", "level"), [(100, "good"), (50, "problem")])
def test_memory_is_compared_with_what_is_free(free: int, level: str) -> None:
    gib = 2**30
    found = Examination(gpus=[GPU("a GPU", (9, 0), 141 * gib, free * gib, True)])
    _room(found, Memory(80 * gib, 80 * gib, 2 * gib, 4096), 1, 128, 16)
    assert found.findings[-1].level == level
    if level == "problem":
        assert "use 2 GPUs" in found.findings[-1].text


def test_sentences_are_printed_without_json() -> None:
    result = CliRunner().invoke(main, ["doctor", "--model", "/nowhere"])
    assert result.exit_code == 1
    assert "FAIL  model" in result.output
    assert "no folder" in result.output
