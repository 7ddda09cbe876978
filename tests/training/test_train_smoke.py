"""The whole training path, small: 20 steps on a slice, export, the runtime loads and generates."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict]]:
    out = tmp_path_factory.mktemp("smoke")
    command = [sys.executable, "-m", "dsv4chat.assets.training.train", "--smoke", "--device", "cpu"]
    done = subprocess.run(
        [*command, "--out", str(out)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = (out / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return out, [json.loads(line) for line in lines]


def test_twenty_steps_lower_the_loss(run: tuple[Path, list[dict]]) -> None:
    losses = [event["loss"] for event in run[1] if event["event"] == "held out"]
    assert losses[-1] < losses[0]
    assert next(event for event in run[1] if event["event"] == "trained")["steps"] == 20


def test_the_checkpoint_is_a_native_nvfp4_checkpoint_in_small_shards(run: tuple[Path, list[dict]]) -> None:
    folder = run[0] / "demo"
    index = json.loads((folder / "model.safetensors.index.json").read_text(encoding="utf-8"))["weight_map"]
    assert "layers.0.ffn.experts.0.w1.weight_scale_2" in index
    assert json.loads((folder / "config.json").read_text(encoding="utf-8"))["prompt_profile"] == "preview"
    assert all(path.stat().st_size <= 12_000_000 for path in folder.glob("*.safetensors"))


def test_the_runtime_computes_what_was_trained_and_generates(run: tuple[Path, list[dict]]) -> None:
    event = next(event for event in run[1] if event["event"] == "runtime")
    assert event["logit_difference"] <= 1e-4
    assert event["generated"] == 8


def test_the_measured_loss_is_that_of_the_exported_weights(run: tuple[Path, list[dict]]) -> None:
    losses = next(event for event in run[1] if event["event"] == "held-out loss")
    exported = next(event for event in run[1] if event["event"] == "held-out loss of the checkpoint")
    assert exported["sparse"] == pytest.approx(losses["nvfp4_sparse"], rel=2e-3)
