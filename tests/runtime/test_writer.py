"""Written checkpoints: what the safetensors library and the reader find in them, their replacement."""

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from dsv4chat.kernels.formats import FP8Weight, MXFP4Weight, NVFP4Weight, Weight, to_tensor
from dsv4chat.runtime.checkpoint import Checkpoint
from dsv4chat.runtime.errors import CheckpointError, ConfigError
from dsv4chat.runtime.writer import write_checkpoint
from tests.support.model_configs import config_dict
from tests.support.model_names import mtp_shapes, native_views
from tests.support.random_models import random_model
from tests.support.saved_models import role_of


def a_model() -> tuple[dict, dict[str, torch.Tensor]]:
    model = random_model("pro", num_hidden_layers=3, compress_ratios=[128, 4, 0])
    return config_dict(model.config, "native"), {k: v.clone() for k, v in native_views(model).items()}


def mixed_formats(tensors: dict[str, torch.Tensor]) -> dict[str, Weight]:
    """Every format somewhere, chosen matrix by matrix."""
    result: dict[str, Weight] = {}
    for name, tensor in tensors.items():
        role = role_of(name)
        if role in ("expert", "shared") or name.endswith("wq_b.weight"):
            result[name] = NVFP4Weight.quantize(tensor)
        elif name.endswith("wo_b.weight"):
            result[name] = MXFP4Weight.quantize(tensor)
        elif role == "attention":
            result[name] = FP8Weight.quantize(tensor)
        elif name.endswith("tid2eid"):
            result[name] = tensor.to(torch.uint8)
        else:
            result[name] = tensor.bfloat16() if tensor.dim() == 2 else tensor
    return result


def test_every_format_reads_back_to_the_values_written(tmp_path: Path) -> None:
    config, tensors = a_model()
    weights = mixed_formats(tensors)
    write_checkpoint(tmp_path / "model", config, weights)
    checkpoint = Checkpoint.open(tmp_path / "model")
    assert not checkpoint.unused
    assert set(checkpoint.names()) == set(weights)
    for name, weight in checkpoint.stream():
        assert torch.equal(to_tensor(weight, torch.float32), to_tensor(weights[name], torch.float32)), name
        wanted = torch.Tensor if isinstance(weights[name], torch.Tensor) else type(weights[name])
        assert isinstance(weight, wanted)


def test_the_safetensors_library_reads_the_files(tmp_path: Path) -> None:
    config, tensors = a_model()
    weights = mixed_formats(tensors)
    files = write_checkpoint(tmp_path / "model", config, weights, shard_bytes=60_000)
    listing = json.loads((tmp_path / "model" / "model.safetensors.index.json").read_text())
    found: dict[str, torch.Tensor] = {}
    for path in files:
        if path.suffix == ".safetensors":
            with safe_open(path, framework="pt") as shard:
                names = list(shard.keys())
                assert all(listing["weight_map"][name] == path.name for name in names)
                found.update({name: shard.get_tensor(name) for name in names})
    assert set(found) == set(listing["weight_map"])
    assert sum(tensor.nbytes for tensor in found.values()) == listing["metadata"]["total_size"]
    expert = weights["layers.2.ffn.experts.1.w2.weight"]
    assert isinstance(expert, NVFP4Weight)
    assert torch.equal(found["layers.2.ffn.experts.1.w2.weight"], expert.codes)
    assert torch.equal(found["layers.2.ffn.experts.1.w2.weight_scale_2"], expert.scale_2)
    assert found["layers.0.attn.wq_a.scale"].dtype == torch.float8_e8m0fnu
    assert torch.equal(found["embed.weight"], tensors["embed.weight"].bfloat16())


@pytest.mark.parametrize("limit", [150_000, 400_000, 10_000_000])
def test_no_shard_exceeds_the_limit(tmp_path: Path, limit: int) -> None:
    config, tensors = a_model()
    files = write_checkpoint(tmp_path / "model", config, tensors, shard_bytes=limit)
    shards = [path for path in files if path.suffix == ".safetensors"]
    total = sum(path.stat().st_size for path in shards)
    assert max(path.stat().st_size for path in shards) <= limit
    assert len(shards) <= 2 * total // limit + 1
    assert [path.name for path in shards] == [
        f"model-{number:05d}-of-{len(shards):05d}.safetensors" for number in range(1, len(shards) + 1)
    ]


def test_an_earlier_checkpoint_is_replaced_and_other_files_stay(tmp_path: Path) -> None:
    config, tensors = a_model()
    folder = tmp_path / "model"
    write_checkpoint(folder, config, tensors, shard_bytes=40_000)
    (folder / "tokenizer.json").write_text("{}")
    (folder / "cards").mkdir()
    (folder / "cards" / "a.md").write_text("card")
    tensors["norm.weight"] = tensors["norm.weight"] + 1
    files = write_checkpoint(folder, config, tensors)
    assert [path.name for path in files] == [
        "config.json",
        "model-00001-of-00001.safetensors",
        "model.safetensors.index.json",
    ]
    assert (folder / "tokenizer.json").read_text() == "{}"
    assert (folder / "cards" / "a.md").read_text() == "card"
    weight = Checkpoint.open(folder).read("norm.weight")
    assert isinstance(weight, torch.Tensor)
    assert torch.equal(weight, tensors["norm.weight"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_a_drafting_layer_is_written_whole_or_refused(tmp_path: Path) -> None:
    config, tensors = a_model()
    model = random_model("pro", num_hidden_layers=3, compress_ratios=[128, 4, 0])
    drafter = {name: torch.randn(shape) for name, shape in mtp_shapes(model.config).items()}
    write_checkpoint(tmp_path / "model", config, {**tensors, **drafter})
    assert Checkpoint.open(tmp_path / "model").has_drafter
    del drafter["mtp.0.e_proj.weight"]
    with pytest.raises(CheckpointError, match=r"mtp\.0\.e_proj\.weight"):
        write_checkpoint(tmp_path / "other", config, {**tensors, **drafter})


def test_what_the_reader_would_refuse_is_not_written(tmp_path: Path) -> None:
    config, tensors = a_model()
    folder = tmp_path / "model"
    write_checkpoint(folder, config, tensors)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def refused(error: type[Exception], match: str, weights: dict, config: dict = config) -> None:
        with pytest.raises(error, match=match):
            write_checkpoint(folder, config, weights)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
        assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]

    without = {
        name: tensor for name, tensor in tensors.items() if name != "layers.1.attn.indexer.wq_b.weight"
    }
    refused(CheckpointError, r"lacks the tensor layers\.1\.attn\.indexer\.wq_b\.weight", without)
    refused(CheckpointError, r"layers\.9\.extra is no tensor", {**tensors, "layers.9.extra": torch.zeros(1)})
    wrong = {**tensors, "norm.weight": torch.zeros(3)}
    refused(CheckpointError, r"norm\.weight has the shape \[3\].*says \[64\]", wrong)
    refused(
        CheckpointError, r"embed.weight.*I64", {**tensors, "embed.weight": tensors["embed.weight"].long()}
    )
    refused(ConfigError, "hidden_size", tensors, {k: v for k, v in config.items() if k != "hidden_size"})


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    config, tensors = a_model()
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="could not be written"):
        write_checkpoint(tmp_path / "file" / "model", config, tensors)
