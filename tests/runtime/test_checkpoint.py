"""Checkpoints of every spelling and format give the oracle's weights."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from dsv4chat.kernels.formats import FP8Weight, MXFP4Weight, NVFP4Weight, to_tensor
from dsv4chat.runtime.checkpoint import Checkpoint
from tests.support.model_names import native_views
from tests.support.random_models import random_model, small_model
from tests.support.saved_models import FORMATS, SPELLINGS, Saved, role_of, save


def assert_reads_as(saved: Saved, checkpoint: Checkpoint) -> None:
    assert set(checkpoint.names()) == set(saved.weights)
    for name, wanted in saved.weights.items():
        got = to_tensor(checkpoint.read(name), wanted.dtype)
        assert got.shape == wanted.shape, name
        assert torch.equal(got, wanted), name


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("pattern", ["pro", "flash"])
def test_every_spelling_and_format_reads_back_to_the_oracle(
    pattern: str, spelling: str, fmt: str, tmp_path: Path
) -> None:
    model = small_model(pattern)
    saved = save(model, tmp_path, spelling=spelling, fmt=fmt)
    checkpoint = Checkpoint.open(tmp_path)
    assert checkpoint.unused == []
    assert not checkpoint.has_drafter
    assert_reads_as(saved, checkpoint)
    # The values are also the oracle's: `save` put them there.
    for name, view in native_views(model).items():
        assert torch.equal(to_tensor(checkpoint.read(name), view.dtype), view), name


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_drafting_layer_is_read_too(spelling: str, fmt: str, tmp_path: Path) -> None:
    saved = save(small_model(), tmp_path, spelling=spelling, fmt=fmt, mtp=True, shards=3)
    checkpoint = Checkpoint.open(tmp_path)
    assert checkpoint.has_drafter
    assert checkpoint.unused == []
    assert_reads_as(saved, checkpoint)


def test_save_pretrained_of_a_whole_pattern_reads_back(tmp_path: Path) -> None:
    model = random_model("pro")
    model.save_pretrained(tmp_path)
    checkpoint = Checkpoint.open(tmp_path)
    assert checkpoint.unused == []
    views = native_views(model)
    assert set(checkpoint.names()) == set(views)
    for name, weight in checkpoint.stream():
        assert torch.equal(weight, views[name]), name


def test_matrices_keep_their_format_and_helpers_come_in_bfloat16(tmp_path: Path) -> None:
    for fmt, expert, drafter_expert, attention in (
        ("nvfp4", NVFP4Weight, MXFP4Weight, FP8Weight),
        ("mxfp4", MXFP4Weight, MXFP4Weight, FP8Weight),
        ("nvfp4-full", NVFP4Weight, NVFP4Weight, NVFP4Weight),
    ):
        folder = tmp_path / fmt
        saved = save(small_model(), folder, spelling="native", fmt=fmt, mtp=True)
        checkpoint = Checkpoint.open(folder)
        for name in saved.weights:
            weight = checkpoint.read(name)
            role = role_of(name)
            if role in ("expert", "mtp_expert", "attention", "shared"):
                wanted = {"expert": expert, "mtp_expert": drafter_expert}.get(role, attention)
                assert isinstance(weight, wanted), name
            else:
                assert isinstance(weight, torch.Tensor), name
            if role == "helper":
                assert weight.dtype == torch.bfloat16, name
    assert checkpoint.form("head.weight") == "NVFP4"
    assert checkpoint.form("layers.0.ffn.gate.tid2eid") == "table"


def test_the_formats_values_are_far_from_input_scale_mistakes(tmp_path: Path) -> None:
    # Were `.input_scale` (0.37 here) multiplied in, the values would be off by that factor.
    model = small_model()
    before = native_views(model)["layers.1.ffn.experts.2.w1.weight"].clone()
    save(model, tmp_path, fmt="nvfp4")
    weight = Checkpoint.open(tmp_path).read("layers.1.ffn.experts.2.w1.weight")
    assert isinstance(weight, NVFP4Weight)
    ratio = (weight.dequantize() * before).sum() / (before * before).sum()
    assert 0.97 < ratio < 1.03


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64, torch.uint16])
def test_tables_of_any_integer_width_come_as_int64(dtype: torch.dtype, tmp_path: Path) -> None:
    saved = save(small_model(), tmp_path, table_dtype=dtype)
    table = Checkpoint.open(tmp_path).read("layers.0.ffn.gate.tid2eid")
    assert isinstance(table, torch.Tensor)
    assert table.dtype == torch.int64
    assert torch.equal(table, saved.weights["layers.0.ffn.gate.tid2eid"])


def test_wide_matrices_use_every_tile(tmp_path: Path) -> None:
    model = small_model((4,), hidden_size=288, moe_intermediate_size=160, q_lora_rank=160)
    saved = save(model, tmp_path, fmt="fp8")
    checkpoint = Checkpoint.open(tmp_path)
    weight = checkpoint.read("layers.0.attn.wq_a.weight")
    assert isinstance(weight, FP8Weight)
    assert tuple(weight.scales.shape) == (2, 3)
    assert len(weight.scales.unique()) > 1
    assert_reads_as(saved, checkpoint)


def test_shards_read_with_and_without_an_index(tmp_path: Path) -> None:
    for index in (True, False):
        folder = tmp_path / str(index)
        saved = save(small_model(), folder, spelling="hf", shards=4, index=index)
        assert len(saved.files) == 4
        assert_reads_as(saved, Checkpoint.open(folder))


@pytest.mark.parametrize("spelling", ["native", "short", "hf"])
def test_any_config_spelling_goes_with_any_names(spelling: str, tmp_path: Path) -> None:
    saved = save(small_model(), tmp_path, spelling="mixture", config_spelling=spelling)
    assert_reads_as(saved, Checkpoint.open(tmp_path))


def test_streaming_gives_each_weight_once_with_rising_progress(tmp_path: Path) -> None:
    saved = save(small_model(), tmp_path, fmt="nvfp4", shards=3, mtp=True)
    checkpoint = Checkpoint.open(tmp_path)
    calls: list[tuple[int, int, int, int]] = []
    seen = [name for name, _ in checkpoint.stream(progress=lambda *call: calls.append(call))]
    assert sorted(seen) == sorted(saved.weights)
    count = len(saved.weights)
    assert calls[0] == (0, checkpoint.bytes_total, 0, count)
    assert calls[-1] == (checkpoint.bytes_total, checkpoint.bytes_total, count, count)
    assert calls == sorted(calls)
    stored = {name: tensor for path in saved.files for name, tensor in load_file(path).items()}
    used = sum(tensor.nbytes for name, tensor in stored.items() if not name.endswith("input_scale"))
    assert checkpoint.bytes_total == used
    part = [name for name, _ in checkpoint.stream(["norm.weight", "embed.weight"])]
    assert sorted(part) == ["embed.weight", "norm.weight"]


def test_fused_experts_count_their_bytes_once(tmp_path: Path) -> None:
    saved = save(small_model(), tmp_path, spelling="hf", fmt="f32")
    total = sum(tensor.nbytes for tensor in load_file(saved.files[0]).values())
    assert Checkpoint.open(tmp_path).bytes_total == total


def test_reading_maps_the_file_instead_of_copying_it(tmp_path: Path) -> None:
    save(small_model(), tmp_path, spelling="hf", fmt="f32")
    checkpoint = Checkpoint.open(tmp_path)
    first = checkpoint.read("layers.0.ffn.experts.0.w1.weight")
    second = checkpoint.read("layers.0.ffn.experts.0.w3.weight")
    assert isinstance(first, torch.Tensor)
    assert isinstance(second, torch.Tensor)
    assert first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to tell memory apart")
def test_streaming_holds_one_weight_at_a_time(tmp_path: Path) -> None:
    # 48 MB of experts in one file; what a process allocates must stay near the largest matrix (0.5 MB).
    model = small_model((4,), hidden_size=512, moe_intermediate_size=512, n_routed_experts=16)
    save(model, tmp_path, fmt="f32")
    assert (tmp_path / "model.safetensors").stat().st_size > 48_000_000
    script = f"""
from pathlib import Path
from dsv4chat.runtime.checkpoint import Checkpoint
from dsv4chat.kernels.formats import to_tensor
import torch

def allocated():
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("RssAnon"))
    return int(line.split()[1]) * 1024

checkpoint = Checkpoint.open({str(tmp_path)!r})
first, peak = allocated(), 0
for name, weight in checkpoint.stream():
    to_tensor(weight, torch.bfloat16)
    peak = max(peak, allocated() - first)
print(peak)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 12_000_000


def test_scales_in_either_spelling_give_the_same_weight(tmp_path: Path) -> None:
    model = small_model()
    saved = save(model, tmp_path, fmt="mxfp4")
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    for ending in ("weight_scale", "weight_scale_inv"):
        renamed = {name.replace(".scale", f".{ending}"): tensor for name, tensor in tensors.items()}
        save_file(renamed, path)
        assert_reads_as(saved, Checkpoint.open(tmp_path))
    # E8M0 bytes stored as plain bytes, packed codes as unsigned ones.
    plain = {
        name: tensor.view(torch.uint8) if tensor.dtype in (torch.float8_e8m0fnu, torch.int8) else tensor
        for name, tensor in tensors.items()
    }
    save_file(plain, path)
    assert_reads_as(saved, Checkpoint.open(tmp_path))


def test_a_weight_at_an_odd_place_in_its_file_is_read(tmp_path: Path) -> None:
    save(small_model(), tmp_path)
    path = tmp_path / "model.safetensors"
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    # The same file with a header one byte longer: every tensor now starts at an odd offset.
    path.write_bytes((length + 1).to_bytes(8, "little") + raw[8 : 8 + length] + b" " + raw[8 + length :])
    shifted = Checkpoint.open(tmp_path).read("norm.weight")
    path.write_bytes(raw)
    whole = Checkpoint.open(tmp_path).read("norm.weight")
    assert isinstance(shifted, torch.Tensor)
    assert isinstance(whole, torch.Tensor)
    assert torch.equal(shifted, whole)
