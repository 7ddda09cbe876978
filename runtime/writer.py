"""Writing a model as a normal sharded checkpoint: DeepSeek's native names, any weight format for each matrix.

    config.json, model.safetensors.index.json, model-00001-of-00003.safetensors, ...

Names of the parts: plain `X.weight`; NVFP4 `X.weight` u8, `X.weight_scale` E4M3, `X.weight_scale_2` float32;
MXFP4 `X.weight` i8, `X.scale` E8M0; FP8 `X.weight` E4M3, `X.scale` E8M0 or float32.

Everything is written into a folder beside the wanted one, opened once to check it, and then takes its place.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from dsv4chat.kernels.formats import FP8Weight, MXFP4Weight, NVFP4Weight, Weight
from dsv4chat.runtime.checkpoint import Checkpoint
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.errors import CheckpointError
from dsv4chat.runtime.shapes import drafter_shapes, required_shapes
from dsv4chat.runtime.shards import DTYPES

INDEX = "model.safetensors.index.json"

# What a tensor's entry in the header takes beside its name, at most (type, shape, two offsets, punctuation).
_HEADER_ENTRY_BYTES = 128
_DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}


def write_checkpoint(
    folder: str | Path,
    config: Mapping[str, Any],
    tensors: Mapping[str, Weight],
    *,
    shard_bytes: int = 12_000_000,
) -> list[Path]:
    """Write `tensors` (native name -> plain or quantised weight) and `config`; returns the files written.

    Files already in `folder` stay, but for an earlier checkpoint's. No shard is larger than `shard_bytes`,
    except one that holds a single larger tensor. Raises ConfigError or CheckpointError, and leaves `folder`
    as it was, if the configuration is not supported, a tensor is missing, unknown or of the wrong shape or
    type, or the disk fails.
    """
    folder = Path(folder).resolve()
    _check(ModelConfig.from_dict(config), tensors)
    shards = _plan(tensors, shard_bytes)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as work:
            fresh = Path(work) / "new"
            fresh.mkdir()
            _keep_other_files(folder, fresh)
            _write_text(fresh / "config.json", json.dumps(dict(config), indent=2) + "\n")
            weight_map: dict[str, str] = {}
            total = 0
            for number, shard in enumerate(shards, start=1):
                name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
                parts = {part: tensor for weight in shard for part, tensor in _parts(weight, tensors[weight])}
                total += _write_shard(fresh / name, parts)
                weight_map.update(dict.fromkeys(parts, name))
            listing = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
            _write_text(fresh / INDEX, json.dumps(listing, indent=2) + "\n")
            Checkpoint.open(fresh)
            _put_in_place(fresh, folder, Path(work) / "old")
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint could not be written to {folder} ({error.strerror}); nothing there was changed."
        ) from error
    return sorted(path for path in folder.iterdir() if _is_checkpoint_file(path))


def _check(config: ModelConfig, tensors: Mapping[str, Weight]) -> None:
    required, drafter = required_shapes(config), drafter_shapes(config)
    drafting = any(name in drafter for name in tensors)
    for name, shape in {**required, **(drafter if drafting else {})}.items():
        if name not in tensors:
            raise CheckpointError(f"The model to be written lacks the tensor {name}.")
        if tuple(tensors[name].shape) != shape:
            raise CheckpointError(
                f"{name} has the shape {list(tensors[name].shape)}, but the configuration says {list(shape)}."
            )
    unknown = [name for name in tensors if name not in required and name not in drafter]
    if unknown:
        raise CheckpointError(f"{unknown[0]} is no tensor of the model the configuration describes.")


def _plan(tensors: Mapping[str, Weight], shard_bytes: int) -> list[list[str]]:
    """Weights to shards, in their order, so that none exceeds `shard_bytes` with its header."""
    shards: list[list[str]] = []
    size = 0
    for name, weight in tensors.items():
        parts = list(_parts(name, weight))
        needed = sum(tensor.nbytes + len(part) + _HEADER_ENTRY_BYTES for part, tensor in parts)
        if not shards or size + needed > shard_bytes:
            shards.append([])
            size = _HEADER_ENTRY_BYTES
        shards[-1].append(name)
        size += needed
    return shards


def _parts(name: str, weight: Weight) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors a weight is stored as, under their names."""
    if isinstance(weight, torch.Tensor):
        yield name, weight
        return
    matrix = name.removesuffix(".weight")
    if isinstance(weight, NVFP4Weight):
        yield name, weight.codes
        yield f"{matrix}.weight_scale", weight.scales
        yield f"{matrix}.weight_scale_2", weight.scale_2
    elif isinstance(weight, MXFP4Weight):
        yield name, weight.codes.view(torch.int8)
        yield f"{matrix}.scale", weight.scales.view(torch.float8_e8m0fnu)
    elif isinstance(weight, FP8Weight):
        yield name, weight.codes
        powers = weight.scales.dtype == torch.uint8
        yield f"{matrix}.scale", weight.scales.view(torch.float8_e8m0fnu) if powers else weight.scales


def _write_shard(path: Path, parts: Mapping[str, torch.Tensor]) -> int:
    """One safetensors file; returns the bytes of its tensors."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, tensor in parts.items():
        dtype = _DTYPE_NAMES.get(tensor.dtype)
        if dtype is None:
            raise CheckpointError(f"{name} has the type {tensor.dtype}, which cannot be stored.")
        end = offset + tensor.nbytes
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # data starts aligned to 8 bytes
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for tensor in parts.values():
            file.write(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        file.flush()
        os.fsync(file.fileno())
    return offset


def _write_text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _is_checkpoint_file(path: Path) -> bool:
    return path.name == "config.json" or path.name.endswith((".safetensors", ".safetensors.index.json"))


def _keep_other_files(folder: Path, fresh: Path) -> None:
    """Copy what else lies in `folder` (tokenizer, model card, ...)."""
    if not folder.exists():
        return
    for path in folder.iterdir():
        if _is_checkpoint_file(path):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, fresh / path.name, symlinks=True)
        else:
            shutil.copy2(path, fresh / path.name, follow_symlinks=False)


def _put_in_place(fresh: Path, folder: Path, old: Path) -> None:
    existed = folder.exists()
    if existed:
        folder.rename(old)
    try:
        fresh.rename(folder)
    except OSError:
        if existed:
            old.rename(folder)
        raise
