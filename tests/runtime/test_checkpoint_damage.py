"""Damaged, incomplete and unusual checkpoints: each is refused in a sentence, or read without harm."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from dsv4chat.runtime.checkpoint import Checkpoint
from dsv4chat.runtime.errors import CheckpointError
from tests.support.random_models import small_model
from tests.support.saved_models import save

INDEX = "model.safetensors.index.json"


def rewrite(folder: Path, change: Any) -> None:
    """Apply `change` to the tensors of a one-file checkpoint."""
    path = folder / "model.safetensors"
    tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    change(tensors)
    save_file(tensors, path)


def saved_native(tmp_path: Path, fmt: str = "bf16", **options: Any) -> Path:
    save(small_model(), tmp_path / "model", fmt=fmt, **options)
    return tmp_path / "model"


def refused(folder: Path, sentence: str) -> None:
    with pytest.raises(CheckpointError, match=sentence) as caught:
        Checkpoint.open(folder)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("name", ["norm.weight", "layers.1.attn.indexer.weights_proj.weight", "hc_head_fn"])
def test_a_missing_tensor_is_named(name: str, tmp_path: Path) -> None:
    folder = saved_native(tmp_path)
    rewrite(folder, lambda tensors: tensors.pop(name))
    refused(folder, rf"lacks the tensor {name}; download")


def test_each_required_tensor_is_required(tmp_path: Path) -> None:
    folder = saved_native(tmp_path)
    path = folder / "model.safetensors"
    whole = load_file(path)
    for name in whole:
        save_file({other: tensor for other, tensor in whole.items() if other != name}, path)
        refused(folder, rf"lacks the tensor {name}; ")


def test_several_missing_tensors_are_counted(tmp_path: Path) -> None:
    folder = saved_native(tmp_path)
    rewrite(folder, lambda tensors: [tensors.pop(name) for name in list(tensors) if ".experts.3." in name])
    refused(folder, r"layers\.0\.ffn\.experts\.3\.w1\.weight \(and 5 more\)")


@pytest.mark.parametrize("fmt", ["bf16", "mxfp4", "nvfp4"])
def test_a_wrong_shape_is_named_with_both_shapes(fmt: str, tmp_path: Path) -> None:
    folder = saved_native(tmp_path, fmt)

    def cut(tensors: dict[str, torch.Tensor]) -> None:
        name = "layers.1.ffn.experts.2.w2.weight"
        tensors[name] = tensors[name][:-1].clone()

    rewrite(folder, cut)
    columns = 32 if fmt == "bf16" else 16
    refused(folder, rf"w2\.weight in model\.safetensors has the shape \[63, {columns}\].*\[64, {columns}\]")


@pytest.mark.parametrize(
    ("fmt", "scale"),
    [("mxfp4", "w1.scale"), ("nvfp4", "w1.weight_scale"), ("fp8", "w1.scale")],
)
def test_a_wrong_shape_of_scales_is_named(fmt: str, scale: str, tmp_path: Path) -> None:
    folder = saved_native(tmp_path, fmt)

    def widen(tensors: dict[str, torch.Tensor]) -> None:
        name = f"layers.1.ffn.experts.2.{scale}"
        raw = tensors[name].view(torch.uint8)
        tensors[name] = torch.cat([raw, raw], dim=1).view(tensors[name].dtype)

    rewrite(folder, widen)
    refused(folder, rf"layers\.1\.ffn\.experts\.2\.{scale} in .* has the shape")


def test_fused_experts_of_a_wrong_shape_are_named(tmp_path: Path) -> None:
    save(small_model(), tmp_path, spelling="hf", fmt="f32")

    def swap(tensors: dict[str, torch.Tensor]) -> None:
        name = "model.layers.0.mlp.experts.down_proj"
        tensors[name] = tensors[name].transpose(1, 2).contiguous()

    rewrite(tmp_path, swap)
    refused(tmp_path, r"experts\.down_proj in .* has the shape \[4, 32, 64\].*\[4, 64, 32\]")


def test_a_truncated_shard_is_named_with_its_sizes(tmp_path: Path) -> None:
    folder = saved_native(tmp_path, shards=3)
    shard = folder / "model-00002-of-00003.safetensors"
    whole = shard.read_bytes()
    for size in (len(whole) - 1, len(whole) // 2, 1000):
        shard.write_bytes(whole[:size])
        refused(folder, rf"model-00002-of-00003\.safetensors is cut short: it has {size:,} of")
    shard.write_bytes(whole[:5])
    refused(folder, r"model-00002-of-00003\.safetensors is not a safetensors file")
    shard.write_bytes(b"")
    refused(folder, r"model-00002-of-00003\.safetensors is not a safetensors file")


def test_a_shard_that_is_listed_but_absent_is_named(tmp_path: Path) -> None:
    folder = saved_native(tmp_path, shards=3)
    (folder / "model-00003-of-00003.safetensors").unlink()
    refused(
        folder, r"model-00003-of-00003\.safetensors belongs to the model but is not in .*; download it again"
    )


def test_a_tensor_that_is_listed_but_absent_is_named(tmp_path: Path) -> None:
    folder = saved_native(tmp_path, shards=2)
    index = json.loads((folder / INDEX).read_text())
    other = {1: 2, 2: 1}[int(index["weight_map"]["norm.weight"][10])]
    index["weight_map"]["norm.weight"] = f"model-0000{other}-of-00002.safetensors"
    (folder / INDEX).write_text(json.dumps(index))
    refused(folder, r"says that norm\.weight is in model-0000")


def test_other_kinds_of_files_are_told_apart(tmp_path: Path) -> None:
    folder = saved_native(tmp_path)
    file = folder / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n")
    refused(folder, "Git LFS pointer")
    file.write_bytes(b"PK\x03\x04" + bytes(100))
    refused(folder, "not a safetensors file")
    file.write_bytes((20).to_bytes(8, "little") + b"not json, not at all" + bytes(100))
    refused(folder, "not a safetensors file")
    file.write_bytes((2).to_bytes(8, "little") + b"[]")
    refused(folder, "not a safetensors file")
    header = b'{"norm.weight":{"dtype":"F32","shape":[64],"data_offsets":[0,8]}}'
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(256))
    refused(folder, r"damaged .*norm\.weight")
    header = b'{"norm.weight":{"dtype":"F32","shape":"64"}}'
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(256))
    refused(folder, r"model\.safetensors is damaged \(its header: .*shape")
    file.write_bytes(whole)
    Checkpoint.open(folder)


def test_an_unreadable_file_is_a_sentence(tmp_path: Path) -> None:
    folder = saved_native(tmp_path)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").mkdir()
    refused(folder, r"model\.safetensors cannot be read")


def test_a_damaged_index_is_a_sentence(tmp_path: Path) -> None:
    folder = saved_native(tmp_path, shards=2)
    for text in ("{", "[]", "{}", '{"weight_map": 3}', '{"weight_map": {"norm.weight": 7}}'):
        (folder / INDEX).write_text(text)
        refused(folder, "is not an index")
    for file in ("../outside.safetensors", "/etc/passwd", "model.bin"):
        (folder / INDEX).write_text(json.dumps({"weight_map": {"norm.weight": file}}))
        refused(folder, "not the name of a safetensors file")
    shutil.copy(folder / INDEX, folder / "other.safetensors.index.json")
    refused(folder, "several indices")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"scale": None}, "with no scale, a quantisation this runtime does not know"),
        ({"scale": torch.ones(1)}, r"scale \(F32 \[1\]\)"),
        ({"scale": torch.ones(64, 1, dtype=torch.float16)}, "F16"),
        ({"weight": torch.zeros(32, 64, dtype=torch.int32)}, "stored as I32"),
        ({"weight": torch.zeros(32, 64), "scale": torch.ones(1, 1)}, "stored as F32 with"),
        ({"weight_scale_inv": torch.ones(1, 1)}, "two scales"),
        ({"weight_scale_2": torch.ones(())}, "stored as F8_E4M3 with"),
    ],
)
def test_an_unknown_quantisation_is_described(
    change: dict[str, torch.Tensor | None], sentence: str, tmp_path: Path
) -> None:
    folder = saved_native(tmp_path, "fp8")

    def apply(tensors: dict[str, torch.Tensor]) -> None:
        for ending, tensor in change.items():
            name = f"layers.0.attn.wq_a.{ending}"
            if tensor is None:
                del tensors[name]
            else:
                tensors[name] = tensor

    rewrite(folder, apply)
    refused(folder, sentence)


def test_another_packers_names_are_told_from_a_missing_tensor(tmp_path: Path) -> None:
    folder = saved_native(tmp_path, "nvfp4")

    def rename(tensors: dict[str, torch.Tensor]) -> None:
        for expert in range(4):
            prefix = f"layers.0.ffn.experts.{expert}.w1"
            tensors[f"{prefix}.weight_packed"] = tensors.pop(f"{prefix}.weight")

    rewrite(folder, rename)
    refused(
        folder,
        r"has layers\.0\.ffn\.experts\.0\.w1\.weight_packed, a quantisation this runtime does not know",
    )


def test_fused_experts_in_8_bits_are_an_unknown_quantisation(tmp_path: Path) -> None:
    save(small_model(), tmp_path, spelling="hf", fmt="f32")
    name = "model.layers.0.mlp.experts.down_proj"

    def quantise(tensors: dict[str, torch.Tensor]) -> None:
        tensors[name] = tensors[name].to(torch.float8_e4m3fn)
        tensors[f"{name}_scale_inv"] = torch.ones(4, 1, 1)

    rewrite(tmp_path, quantise)
    refused(tmp_path, rf"{name} in .* is stored as F8_E4M3 with no scale, a quantisation")


def test_scales_without_their_matrix_do_not_stand_in_for_it(tmp_path: Path) -> None:
    folder = saved_native(tmp_path, "nvfp4")
    rewrite(folder, lambda tensors: tensors.pop("layers.0.ffn.experts.0.w1.weight"))
    refused(folder, r"lacks the tensor layers\.0\.ffn\.experts\.0\.w1\.weight; ")


def test_a_table_of_other_than_existing_experts_is_refused(tmp_path: Path) -> None:
    folder = saved_native(tmp_path)
    name = "layers.0.ffn.gate.tid2eid"
    for value in (4, -1):
        rewrite(folder, lambda tensors, value=value: tensors[name].view(-1)[7].fill_(value))
        with pytest.raises(CheckpointError, match="experts that do not exist"):
            Checkpoint.open(folder).read(name)
    rewrite(folder, lambda tensors: tensors.update({name: tensors[name].float()}))
    refused(folder, "table of integers")


def test_the_same_tensor_in_two_spellings_is_refused(tmp_path: Path) -> None:
    folder = saved_native(tmp_path)
    rewrite(folder, lambda tensors: tensors.update({"lm_head.weight": tensors["head.weight"].clone()}))
    refused(folder, "same tensor in two spellings")


def test_a_tensor_in_two_files_is_refused(tmp_path: Path) -> None:
    folder = saved_native(tmp_path)
    shutil.copy(folder / "model.safetensors", folder / "copy.safetensors")
    refused(folder, "is both in copy.safetensors and in model.safetensors")


def test_other_tensors_are_reported_and_do_not_disturb(tmp_path: Path) -> None:
    folder = saved_native(tmp_path)
    extra = {
        "layers.0.attn.rotary.inv_freq": torch.zeros(3),
        "layers.7.attn_norm.weight": torch.zeros(64),
        "vision.patch.weight": torch.zeros(2, 2),
        "layers.0.attn.attn_sink.scale": torch.zeros(1),
    }
    rewrite(folder, lambda tensors: tensors.update(extra))
    checkpoint = Checkpoint.open(folder)
    assert checkpoint.unused == sorted(extra)
    assert not set(checkpoint.names()) & set(extra)


def test_a_later_drafter_is_left_alone(tmp_path: Path) -> None:
    folder = saved_native(tmp_path, mtp=True)
    config = json.loads((folder / "config.json").read_text())
    config |= {"dspark_block_size": 5, "dspark_markov_rank": 8}
    (folder / "config.json").write_text(json.dumps(config))
    extra = {"mtp.2.dspark_markov.weight": torch.zeros(2), "mtp.1.attn.wq_a.weight": torch.zeros(5, 5)}
    rewrite(folder, lambda tensors: tensors.update(extra))
    checkpoint = Checkpoint.open(folder)
    assert not checkpoint.has_drafter
    assert set(extra) < set(checkpoint.unused)
    assert all(name.startswith("mtp.") for name in checkpoint.unused)


def test_an_incomplete_drafting_layer_is_reported_as_unused(tmp_path: Path) -> None:
    folder = saved_native(tmp_path, mtp=True, fmt="mxfp4")
    rewrite(folder, lambda tensors: tensors.pop("mtp.0.hnorm.weight"))
    checkpoint = Checkpoint.open(folder)
    assert not checkpoint.has_drafter
    assert "mtp.0.attn.wq_a.scale" in checkpoint.unused
    assert not any(name.startswith("mtp.") for name in checkpoint.names())


def test_a_drafting_layer_of_a_wrong_shape_is_named(tmp_path: Path) -> None:
    folder = saved_native(tmp_path, mtp=True)
    rewrite(folder, lambda tensors: tensors.update({"mtp.0.e_proj.weight": torch.zeros(2, 64)}))
    refused(folder, r"mtp\.0\.e_proj\.weight")


def test_code_and_pickles_beside_the_weights_are_never_run(tmp_path: Path) -> None:
    folder = saved_native(tmp_path)
    witness = tmp_path / "ran"
    code = f"open({str(witness)!r}, 'w').close()\n"
    for name in ("modeling_deepseek_v4.py", "configuration_deepseek_v4.py", "encoding.py", "__init__.py"):
        (folder / name).write_text(code)
    # A pickle that would create the witness when loaded.
    pickle = b"cbuiltins\nexec\n(V" + code.strip().encode() + b"\ntR."
    for name in ("pytorch_model.bin", "optimizer.pt", "training_args.bin"):
        (folder / name).write_bytes(pickle)
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {"AutoModelForCausalLM": "modeling_deepseek_v4.DeepseekV4ForCausalLM"}
    (folder / "config.json").write_text(json.dumps(config))
    for _ in Checkpoint.open(folder).stream():
        pass
    assert not witness.exists()
    (folder / "model.safetensors").unlink()
    refused(folder, r"pickle files \(optimizer\.pt\), which are never opened.*convert them to safetensors")
    assert not witness.exists()


def test_a_folder_without_weights_says_so(tmp_path: Path) -> None:
    folder = saved_native(tmp_path)
    (folder / "model.safetensors").unlink()
    refused(folder, r"holds no \.safetensors file")


def test_asking_for_an_unknown_weight_is_an_error(tmp_path: Path) -> None:
    checkpoint = Checkpoint.open(saved_native(tmp_path))
    with pytest.raises(CheckpointError, match=r"no tensor layers\.5\.attn_norm\.weight"):
        checkpoint.read("layers.5.attn_norm.weight")
