"""The list of tensors a model needs: against `transformers` and against the releases' sizes on disk."""

import json
from math import prod
from pathlib import Path

import pytest

from dsv4chat.runtime.checkpoint import Checkpoint
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.shapes import drafter_shapes, required_shapes
from tests.support.model_configs import config_dict
from tests.support.model_names import mtp_shapes, native_views
from tests.support.random_models import random_model
from tests.support.releases import FLASH, PRO
from tests.support.saved_models import role_of

Stored = dict[str, tuple[str, tuple[int, ...]]]
SIZES = {"U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E8M0": 1, "F32": 4, "BF16": 2, "I64": 8}


@pytest.mark.parametrize("pattern", ["pro", "flash"])
def test_the_required_tensors_are_those_of_transformers(pattern: str) -> None:
    model = random_model(pattern, o_groups=4, hidden_size=96, o_lora_rank=64)
    config = ModelConfig.from_dict(config_dict(model.config, "native"))
    assert required_shapes(config) == {name: tuple(view.shape) for name, view in native_views(model).items()}
    assert drafter_shapes(config) == mtp_shapes(model.config)


def test_no_drafter_is_asked_of_other_models() -> None:
    assert drafter_shapes(ModelConfig.from_dict({**PRO, "num_nextn_predict_layers": 0})) == {}
    assert drafter_shapes(ModelConfig.from_dict({**PRO, "dspark_block_size": 5})) == {}


def nvfp4_release(config: ModelConfig) -> Stored:
    """Types and shapes in the NVFP4 build of a release: experts 4-bit, attention FP8, the rest plain."""
    stored: Stored = {}
    for name, shape in {**required_shapes(config), **drafter_shapes(config)}.items():
        role, matrix = role_of(name), name.removesuffix(".weight")
        if role in ("expert", "mtp_expert"):
            stored[name] = ("U8" if role == "expert" else "I8", (shape[0], shape[1] // 2))
            if role == "expert":
                stored[f"{matrix}.weight_scale"] = ("F8_E4M3", (shape[0], shape[1] // 16))
                stored[f"{matrix}.weight_scale_2"] = ("F32", ())
                stored[f"{matrix}.input_scale"] = ("F32", ())
            else:
                stored[f"{matrix}.scale"] = ("F8_E8M0", (shape[0], shape[1] // 32))
        elif role in ("attention", "shared"):
            stored[name] = ("F8_E4M3", shape)
            stored[f"{matrix}.scale"] = ("F8_E8M0", (-(-shape[0] // 128), -(-shape[1] // 128)))
        elif name.endswith("tid2eid"):
            stored[name] = ("I64", shape)
        else:
            stored[name] = ("BF16" if name.endswith("weight") else "F32", shape)
    return stored


def nbytes(stored: tuple[str, tuple[int, ...]]) -> int:
    return prod(stored[1]) * SIZES[stored[0]]


@pytest.mark.parametrize(("release", "gigabytes"), [(PRO, 913), (FLASH, 168)], ids=["pro", "flash"])
def test_the_nvfp4_builds_have_their_known_size(release: dict, gigabytes: int) -> None:
    stored = nvfp4_release(ModelConfig.from_dict(release))
    assert round(sum(nbytes(entry) for entry in stored.values()) / 1e9) == gigabytes


@pytest.mark.soak
def test_a_checkpoint_of_flash_size_opens_without_reading_it(tmp_path: Path) -> None:
    # Sparse files: 168 GB by their headers, a few megabytes on the disk.
    config = ModelConfig.from_dict(FLASH)
    (tmp_path / "config.json").write_text(json.dumps(FLASH))
    stored = list(nvfp4_release(config).items())
    shards = [dict(stored[start : start + 4000]) for start in range(0, len(stored), 4000)]
    for number, shard in enumerate(shards):
        header, end = {}, 0
        for name, (dtype, shape) in shard.items():
            start, end = end, end + nbytes((dtype, shape))
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
        text = json.dumps(header).encode()
        with (tmp_path / f"model-{number:05d}.safetensors").open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            file.truncate(8 + len(text) + end)
    checkpoint = Checkpoint.open(tmp_path)
    assert checkpoint.has_drafter
    assert checkpoint.unused == []
    assert round(checkpoint.bytes_total / 1e9) == 168
    expert = checkpoint.read("layers.42.ffn.experts.255.w2.weight")
    assert tuple(expert.shape) == (4096, 2048)
    assert not expert.dequantize().any()
