"""The benchmark at real sizes and the random weights it runs on, at sizes a CPU can do."""

import json
import math

import pytest
import torch
from click.testing import CliRunner

from dsv4chat.assets import demo_path
from dsv4chat.cli import main
from dsv4chat.kernels.formats import format_name
from dsv4chat.runtime.bench_bytes import step_bytes
from dsv4chat.runtime.bench_decode import bench_decode
from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.engine import Engine
from dsv4chat.runtime.errors import EngineError
from dsv4chat.runtime.geometries import geometry
from dsv4chat.runtime.gpu.loading import PackedLoader
from dsv4chat.runtime.model import Model
from dsv4chat.runtime.random_weights import MIXES, random_source
from dsv4chat.runtime.shapes import required_shapes
from tests.support.releases import FLASH, PRO

CPU = torch.device("cpu")


@pytest.mark.parametrize(("name", "release"), [("flash", FLASH), ("pro", PRO)])
def test_the_geometries_are_those_of_the_releases(name: str, release: dict) -> None:
    ours, theirs = geometry(name), ModelConfig.from_dict(release)
    for field in ours.__dataclass_fields__:
        if field not in ("mtp_compress_ratios", "num_mtp_layers", "drafter"):
            assert getattr(ours, field) == getattr(theirs, field), field


@pytest.mark.parametrize("mix", MIXES)
def test_random_weights_have_the_shapes_and_formats_of_a_checkpoint(mix: str) -> None:
    source = random_source("random:demo", CPU, 4, mix)
    forms = set()
    for name, shape in required_shapes(source.config).items():
        weight = source.read(name)
        assert tuple(weight.shape) == shape, name
        assert source.nbytes(name) == weight.nbytes, name
        forms.add((source.form(name), format_name(weight)))
    assert ("NVFP4", "NVFP4") in forms
    assert (("FP8", "FP8") in forms) == (mix == "nvidia")
    again = random_source("random:demo", CPU, 4, mix)
    name = "layers.2.attn.wq_b.weight"
    assert torch.equal(source.read(name).dequantize(), again.read(name).dequantize())
    table = source.read("layers.0.ffn.gate.tid2eid")
    assert all(len(set(row)) == table.shape[1] for row in table[:200].tolist())
    # Unit variance, so that the streams stay finite.
    values = source.read("layers.2.ffn.experts.3.w1.weight").dequantize()
    assert float(values.std()) * math.sqrt(values.shape[1]) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("mix", MIXES)
def test_a_step_counts_every_weight_it_reads_once(mix: str) -> None:
    source = random_source("random:demo", CPU, mix=mix)
    config = source.config
    model = Model.load(source, CPU, torch.float32, loader=PackedLoader)
    counted = step_bytes(model, KVCache(config, "fp8", 1024, CPU), 1024)
    expected = 0.0
    for name in required_shapes(config):
        if name.startswith("embed") or "tid2eid" in name or not name.endswith((".weight", "_fn")):
            continue
        chosen = ".ffn.experts." in name
        expected += source.nbytes(name) * (config.experts_per_token / config.num_experts if chosen else 1)
    rows = 0
    for layer in range(config.num_layers):
        ratio = config.compress_ratios[layer]
        blocks = 1024 // ratio
        chosen = min(blocks, config.index_topk) if ratio == 4 else blocks
        rows += (128 + chosen) * 88 + (blocks * (16 + 1) if chosen < blocks else 0)
    # Norms and the factor of each row are small change.
    assert counted.total == pytest.approx(expected + rows, rel=0.03)
    assert sum(counted.by_operation.values()) == counted.total
    assert counted.head == pytest.approx(source.nbytes("head.weight"), rel=0.01)


def test_index_queries_count_only_where_there_is_something_to_choose() -> None:
    source = random_source("random:demo", CPU, 4)
    model = Model.load(source, CPU, torch.float32, loader=PackedLoader)
    topk = source.config.index_topk
    read = []
    for context in (4 * topk, 4 * (topk + 1)):
        counted = step_bytes(model, KVCache(source.config, "fp8", context, CPU), context)
        read.append(counted.by_operation["attention: query projections"])
    matrices = [name for name in required_shapes(source.config) if name.endswith("indexer.wq_b.weight")]
    assert matrices
    expected = sum(source.nbytes(name) for name in matrices)
    assert read[1] - read[0] == pytest.approx(expected, rel=0.05)


def test_the_benchmark_runs_without_a_gpu() -> None:
    result = bench_decode("demo", layers=3, context=60, tokens=4, device="cpu", against=True)
    assert (result.layers, result.kernels, result.launches) == (3, "torch", 0)
    assert result.token > result.head > 0
    assert result.layer == pytest.approx((result.token - result.head) / 3)
    assert result.floor == pytest.approx(1000 * result.bytes / result.bandwidth)
    assert result.against is not None
    assert result.ratio == pytest.approx(result.against.layer / result.layer)


def test_the_command_prints_one_object() -> None:
    arguments = ["bench", "decode", "--model", "random:demo", "--layers", "2", "--context", "200"]
    result = CliRunner().invoke(main, [*arguments, "--tokens", "3", "--device", "cpu", "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.output)
    assert (figures["geometry"], figures["layers"], figures["mix"]) == ("demo", 2, "nvidia")
    printed = CliRunner().invoke(main, [*arguments, "--tokens", "3", "--device", "cpu", "--mix", "nvfp4"])
    assert printed.exit_code == 0
    assert "a layer" in printed.output
    assert "read bandwidth" in printed.output


def test_what_cannot_be_measured_is_a_sentence() -> None:
    cases = (
        (["--geometry", "flash", "--layers", "99"], "43 layers"),
        (["--model", "random:huge"], "no geometry"),
        (["--geometry", "demo", "--context", "40", "--tokens", "40"], "must hold 13 tokens more than the 40"),
        (["--geometry", "demo", "--context", "70000"], "places for 65,536 tokens"),
        (["--geometry", "demo", "--kernels", "cute", "--device", "cpu"], "NVIDIA GPUs"),
    )
    for arguments, sentence in cases:
        result = CliRunner().invoke(main, ["bench", "decode", *arguments])
        assert result.exit_code == 1, arguments
        assert sentence in result.output
    with pytest.raises(EngineError, match="random weights only"):
        Engine.load("demo", layers=2)
    with pytest.raises(EngineError, match="nvidia or nvfp4"):
        Engine.load("random:demo", mix="int4", device="cpu")


def test_an_engine_runs_on_random_weights() -> None:
    engine = Engine.load("random:demo", device="cpu", layers=3, mix="nvfp4")
    assert engine.config.num_layers == 3
    assert bool(torch.isfinite(engine.logits([1, 2, 3, 4])).all())


def test_loading_is_timed_by_the_bytes_of_the_files() -> None:
    result = CliRunner().invoke(main, ["bench", "load", "--device", "cpu", "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.output)
    files = sum(path.stat().st_size for path in demo_path().glob("*.safetensors"))
    assert 0.95 * files < figures["bytes"] <= files
    assert figures["rate"] == pytest.approx(figures["bytes"] / figures["seconds"])
    wrong = CliRunner().invoke(main, ["bench", "load", "--model", "/nowhere"])
    assert wrong.exit_code == 1
