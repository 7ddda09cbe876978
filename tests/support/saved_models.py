"""Random models saved as checkpoints in every spelling and weight format, with the values the files hold.

`save` writes what a third party would have written (own encoders, own names) and puts the rounded values back
into the `transformers` model, which so stays the oracle of what was saved.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import DeepseekV4ForCausalLM

from tests.support import reference_formats as formats
from tests.support.model_configs import config_dict
from tests.support.model_names import mtp_shapes, native_views, spell
from tests.support.random_models import random_value

SPELLINGS = ("native", "hf", "mixture", "build")
FORMATS = ("f32", "bf16", "fp8", "mxfp4", "nvfp4", "nvfp4-full")

# What each format stores the matrices of each role as; everything else is plain (see `_plain_dtype`).
_MATRICES = {
    "f32": {},
    "bf16": {},
    "fp8": {"expert": "fp8", "mtp_expert": "fp8", "attention": "fp8", "shared": "fp8"},
    "mxfp4": {"expert": "mxfp4", "mtp_expert": "mxfp4", "attention": "fp8", "shared": "fp8"},
    "nvfp4": {"expert": "nvfp4", "mtp_expert": "mxfp4", "attention": "fp8", "shared": "fp8"},
    "nvfp4-full": {
        "expert": "nvfp4",
        "mtp_expert": "nvfp4",
        "attention": "nvfp4",
        "shared": "nvfp4",
        "helper": "nvfp4",
    },
}
_FLOAT32_LEAVES = ("attn_sink", "ape", "bias", "fn", "base", "scale")


@dataclass(frozen=True)
class Saved:
    """A saved checkpoint. weights: native name -> the float32 (tables: integer) values to be read from it."""

    folder: Path
    weights: dict[str, torch.Tensor]
    stored_names: dict[str, str]
    files: list[Path]


def role_of(native: str) -> str:
    """What a tensor is for, as far as formats care."""
    leaf = native.removesuffix(".weight").rsplit(".", 1)[-1]
    if ".ffn.experts." in native:
        return "mtp_expert" if native.startswith("mtp.") else "expert"
    if ".shared_experts." in native:
        return "shared"
    if leaf in ("wq_a", "wq_b", "wo_a", "wo_b", "e_proj", "h_proj"):
        return "attention"
    if leaf == "wkv" and "compressor" not in native:
        return "attention"
    if leaf in ("wkv", "wgate", "weights_proj", "head") or native.endswith("gate.weight"):
        return "helper"
    return "plain"


@torch.no_grad()
def save(
    model: DeepseekV4ForCausalLM,
    folder: Path,
    *,
    spelling: str = "native",
    fmt: str = "bf16",
    mtp: bool = False,
    shards: int = 1,
    index: bool = True,
    config_spelling: str | None = None,
    table_dtype: torch.dtype = torch.int64,
    seed: int = 0,
) -> Saved:
    """Write `model` into `folder` and set its weights to the values written.

    spelling: "native" (DeepSeek's names), "hf" (`state_dict()` names; experts fused when they are plain),
        "mixture" (what `save_pretrained` writes; with fmt "f32" and one shard written by it) or "build" (the
        all-NVFP4 builds' names).
    fmt: one of FORMATS. mtp: also a random drafting layer (the `transformers` model has none).
    shards, index: number of files, and whether an index file lists them (one file never has one).
    config_spelling: "native", "short" or "hf"; by default what goes with `spelling`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    source: dict[str, torch.Tensor] = dict(native_views(model))
    if mtp:
        generator = torch.Generator().manual_seed(seed + 1)
        for name, shape in mtp_shapes(model.config).items():
            source[name] = random_value(_mtp_parameter(name), shape, model.config, generator)
    stored: dict[str, torch.Tensor] = {}
    weights: dict[str, torch.Tensor] = {}
    for name, value in source.items():
        entries, values = _encode(name, value, fmt, spelling, table_dtype)
        stored.update(entries)
        value.copy_(values)
        weights[name] = values
    if spelling == "hf" and "expert" not in _MATRICES[fmt]:
        _fuse_experts(stored, model)
    if spelling == "mixture" and fmt == "f32" and not mtp and shards == 1:
        model.save_pretrained(folder)
    else:
        config = config_dict(model.config, config_spelling or ("native" if spelling == "native" else "hf"))
        (folder / "config.json").write_text(json.dumps(config, indent=1))
        _write_shards(stored, folder, shards, index)
    return Saved(
        folder,
        weights,
        {name: spell(name, spelling) for name in source},
        sorted(folder.glob("*.safetensors")),
    )


def _mtp_parameter(native: str) -> str:
    """The `state_dict()` kind of name that `random_value` scales by, for a tensor of the drafting layer."""
    for ending, name in (
        ("attn_sink", "sinks"),
        ("gate.bias", "e_score_correction_bias"),
        ("_base", "base"),
        ("_scale", "scale"),
        ("wo_b.weight", "o_b_proj"),
        ("w2.weight", "down_proj"),
    ):
        if native.endswith(ending):
            return name
    return native


def _plain_dtype(native: str, fmt: str) -> torch.dtype:
    leaf = native.removesuffix(".weight").rsplit(".", 1)[-1].rsplit("_", 1)[-1]
    keep = native.endswith(_FLOAT32_LEAVES) or leaf in _FLOAT32_LEAVES
    return torch.float32 if fmt == "f32" or keep else torch.bfloat16


def _encode(
    native: str, value: torch.Tensor, fmt: str, spelling: str, table_dtype: torch.dtype
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """The stored tensors of one weight, and the values a reader must get from them."""
    name = spell(native, spelling)
    if native.endswith("tid2eid"):
        return {name: value.to(table_dtype)}, value.clone()
    role = role_of(native)
    how = _MATRICES[fmt].get(role)
    if how is None:
        plain = value.to(_plain_dtype(native, fmt))
        return {name: plain.contiguous().clone()}, plain.float()
    matrix = name.removesuffix(".weight")
    array = value.numpy().astype(np.float64)
    if how == "nvfp4":
        packed, scales, scale_2 = formats.encode_nvfp4(array)
        exact = formats.decode_nvfp4(packed, scales, float(scale_2))
        entries = {
            f"{matrix}.weight": torch.from_numpy(packed),
            f"{matrix}.weight_scale": torch.from_numpy(scales).view(torch.float8_e4m3fn),
            f"{matrix}.weight_scale_2": torch.tensor(float(scale_2), dtype=torch.float32),
            # Present in these builds for 4-bit activations; a reader that multiplies it in fails.
            f"{matrix}.input_scale": torch.tensor(0.37, dtype=torch.float32),
        }
    elif how == "mxfp4":
        packed, scales = formats.encode_mxfp4(array)
        exact = formats.decode_mxfp4(packed, scales)
        ending = "scale" if spelling == "native" else "weight_scale"
        entries = {
            f"{matrix}.weight": torch.from_numpy(packed.view(np.int8)),
            f"{matrix}.{ending}": torch.from_numpy(scales).view(torch.float8_e8m0fnu),
        }
    else:
        codes, scales = formats.encode_fp8(array)
        exact = formats.decode_fp8(codes, formats.E8M0_CODES[scales])
        entries = {f"{matrix}.weight": torch.from_numpy(codes).view(torch.float8_e4m3fn)}
        if spelling == "native":
            entries[f"{matrix}.scale"] = torch.from_numpy(scales).view(torch.float8_e8m0fnu)
        else:
            factors = torch.from_numpy(formats.E8M0_CODES[scales]).float()
            entries[f"{matrix}.weight_scale_inv"] = factors
    values = torch.from_numpy(exact).float()
    if role == "helper":
        values = values.bfloat16().float()  # the reader's precision floor: these are used in bf16
    return entries, values


def _fuse_experts(stored: dict[str, torch.Tensor], model: DeepseekV4ForCausalLM) -> None:
    """Replace per-expert tensors by `gate_up_proj` (gate first) and `down_proj`, as in `state_dict()`."""
    for layer in range(model.config.num_hidden_layers):
        prefix = f"model.layers.{layer}.mlp.experts"
        parts = {
            kind: [
                stored.pop(f"{prefix}.{e}.{kind}_proj.weight") for e in range(model.config.n_routed_experts)
            ]
            for kind in ("gate", "up", "down")
        }
        gate_up = torch.cat([torch.stack(parts["gate"]), torch.stack(parts["up"])], dim=1)
        stored[f"{prefix}.gate_up_proj"] = gate_up
        stored[f"{prefix}.down_proj"] = torch.stack(parts["down"])


def _write_shards(stored: dict[str, torch.Tensor], folder: Path, shards: int, index: bool) -> None:
    names = list(stored)
    groups = [names[i::shards] for i in range(shards)]
    if shards == 1:
        save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
        return
    weight_map: dict[str, str] = {}
    for number, group in enumerate(groups, start=1):
        file = f"model-{number:05d}-of-{shards:05d}.safetensors"
        save_file({name: stored[name] for name in group}, folder / file, metadata={"format": "pt"})
        weight_map.update(dict.fromkeys(group, file))
    if index:
        total = sum(tensor.numel() * tensor.element_size() for tensor in stored.values())
        listing = {"metadata": {"total_size": total}, "weight_map": weight_map}
        (folder / "model.safetensors.index.json").write_text(json.dumps(listing))
