"""Safetensors files: their headers, and their tensors as views of the mapped file.

A file is 8 bytes of header length (little-endian), a JSON header (name -> dtype, shape, data_offsets), then
the data. Source: the safetensors format description. Headers are read and checked at once, so that a damaged
file is found before any work; tensors are mapped, not read, so nothing is in memory twice.
"""

import mmap
from math import prod
from pathlib import Path
from typing import NamedTuple

import msgspec
import torch

from dsv4chat.runtime.errors import CheckpointError

# Longer headers are refused by the safetensors library too: a length like that means another kind of file.
MAX_HEADER_BYTES = 100_000_000

DTYPES: dict[str, torch.dtype] = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E8M0": torch.float8_e8m0fnu,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U64": torch.uint64,
    "U32": torch.uint32,
    "U16": torch.uint16,
    "U8": torch.uint8,
}


class Entry(NamedTuple):
    """One stored tensor. begin, end: bytes from the start of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int
    shard: "Shard"

    @property
    def nbytes(self) -> int:
        """Stored size."""
        return self.end - self.begin

    def tensor(self) -> torch.Tensor:
        """The tensor as a view of the mapped file (a copy where its place is not aligned for its type)."""
        return self.shard.tensor(self)


class _Described(msgspec.Struct, gc=False):
    """A tensor in a header. The defaults let `__metadata__`, which has other keys, pass as one."""

    dtype: str = ""
    shape: tuple[int, ...] = ()
    data_offsets: tuple[int, int] = (0, 0)


class Shard:
    """One safetensors file, opened. Raises CheckpointError if it is damaged or something else."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._map: mmap.mmap | None = None
        try:
            self._size = path.stat().st_size
            with path.open("rb") as file:
                start = file.read(8)
                length = int.from_bytes(start, "little")
                if len(start) < 8 or length > MAX_HEADER_BYTES:
                    raise CheckpointError(_not_safetensors(path, start))
                raw = file.read(length)
        except FileNotFoundError:
            raise CheckpointError(
                f"{path.name} belongs to the model but is not in {path.parent}; download it again."
            ) from None
        except OSError as error:
            raise CheckpointError(
                f"{path} cannot be read ({error.strerror}); check its permissions."
            ) from error
        if not raw.startswith(b"{"):
            raise CheckpointError(_not_safetensors(path, start))
        if len(raw) < length:
            raise CheckpointError(_truncated(path, 8 + length, self._size))
        self.entries = self._read_header(raw, start, 8 + length)

    def _read_header(self, raw: bytes, start: bytes, data_start: int) -> dict[str, Entry]:
        try:
            header = msgspec.json.decode(raw, type=dict[str, _Described])
        except msgspec.ValidationError as error:
            raise CheckpointError(
                f"{self.path.name} is damaged (its header: {error}); download it again."
            ) from None
        except msgspec.DecodeError:
            raise CheckpointError(_not_safetensors(self.path, start)) from None
        header.pop("__metadata__", None)
        entries = {name: self._entry(name, fields, data_start) for name, fields in header.items()}
        needed = max((entry.end for entry in entries.values()), default=data_start)
        if needed > self._size:
            raise CheckpointError(_truncated(self.path, needed, self._size))
        return entries

    def _entry(self, name: str, fields: "_Described", data_start: int) -> Entry:
        begin, end = fields.data_offsets
        dtype = DTYPES.get(fields.dtype)
        sane = fields.dtype != "" and 0 <= begin <= end and min(fields.shape, default=0) >= 0
        if not sane or (dtype is not None and end - begin != prod(fields.shape) * dtype.itemsize):
            raise CheckpointError(
                f"{self.path.name} is damaged (its header describes {name} wrongly); download it again."
            )
        return Entry(name, fields.dtype, fields.shape, data_start + begin, data_start + end, self)

    def tensor(self, entry: Entry) -> torch.Tensor:
        """The tensor of one of this shard's entries."""
        dtype = DTYPES.get(entry.dtype)
        if dtype is None:
            raise CheckpointError(f"{entry.name} in {self.path.name} has the unknown type {entry.dtype}.")
        if entry.nbytes == 0:
            return torch.empty(entry.shape, dtype=dtype)
        raw = torch.frombuffer(self._mapped(), dtype=torch.uint8, count=entry.nbytes, offset=entry.begin)
        if entry.begin % dtype.itemsize:
            raw = raw.clone()
        return raw.view(dtype).view(entry.shape)

    def _mapped(self) -> mmap.mmap:
        if self._map is None:
            try:
                with self.path.open("rb") as file:
                    # Private and writable, because torch warns about tensors on read-only memory; the file is
                    # never changed.
                    self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            except (OSError, ValueError) as error:
                raise CheckpointError(f"{self.path} cannot be mapped into memory ({error}).") from error
            if len(self._map) < self._size:
                raise CheckpointError(_truncated(self.path, self._size, len(self._map)))
        return self._map


def find_entries(folder: Path) -> dict[str, Entry]:
    """All tensors of a model folder by their stored names: those of its index, or of every safetensors file.

    Raises CheckpointError if there are none, if a listed file or tensor is absent, or if a file is damaged.
    """
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise CheckpointError(
            f"{folder} cannot be read ({error.strerror}); check its permissions."
        ) from error
    indices = [name for name in names if name.endswith(".safetensors.index.json")]
    if len(indices) > 1:
        raise CheckpointError(
            f"{folder} has several indices ({', '.join(indices)}); keep the right one only."
        )
    if indices:
        return _listed_entries(folder / indices[0])
    files = [name for name in names if name.endswith(".safetensors")]
    if not files:
        raise CheckpointError(_no_weights(folder, names))
    entries: dict[str, Entry] = {}
    for file in files:
        for name, entry in Shard(folder / file).entries.items():
            if name in entries:
                other = entries[name].shard.path.name
                raise CheckpointError(
                    f"{name} is both in {other} and in {file}; remove the file that is not meant."
                )
            entries[name] = entry
    return entries


class _Index(msgspec.Struct):
    """An index file: stored name -> file; other keys are not needed."""

    weight_map: dict[str, str]


def _listed_entries(index: Path) -> dict[str, Entry]:
    try:
        weight_map = msgspec.json.decode(index.read_bytes(), type=_Index).weight_map
    except OSError as error:
        raise CheckpointError(f"{index} cannot be read ({error.strerror}); check its permissions.") from error
    except msgspec.DecodeError:
        raise CheckpointError(f"{index} is not an index of weight files; download it again.") from None
    files = sorted(set(weight_map.values()))
    for file in files:
        # A name only: an index must not reach outside its folder.
        if Path(file).name != file or not file.endswith(".safetensors"):
            raise CheckpointError(f"{index} lists {file!r}, which is not the name of a safetensors file.")
    shards = {file: Shard(index.parent / file) for file in files}
    entries: dict[str, Entry] = {}
    for name, file in weight_map.items():
        entry = shards[file].entries.get(name)
        if entry is None:
            raise CheckpointError(
                f"{index.name} says that {name} is in {file}, but it is not there; download {file} again."
            )
        entries[name] = entry
    return entries


def _truncated(path: Path, needed: int, size: int) -> str:
    return f"{path.name} is cut short: it has {size:,} of {needed:,} bytes; download it again."


def _not_safetensors(path: Path, start: bytes) -> str:
    if start.startswith(b"version "):
        return f"{path.name} is a Git LFS pointer, not the weights; fetch the real file (git lfs pull)."
    return f"{path.name} is not a safetensors file (or its start is damaged); download it again."


def _no_weights(folder: Path, names: list[str]) -> str:
    pickles = [name for name in names if name.endswith((".bin", ".pt", ".pth", ".ckpt", ".pkl"))]
    if pickles:
        return (
            f"{folder} has its weights in pickle files ({pickles[0]}), which are never opened, as they "
            "can run code; convert them to safetensors."
        )
    return f"{folder} holds no .safetensors file; give the folder with the model's weights."
