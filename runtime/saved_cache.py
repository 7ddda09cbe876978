"""One branch of a conversation's cache as a safetensors file: written whole or not at all, checked if read.

Tensors: `rows.NNNN`, the compressed rows in the cache's order, and `mark.POSITION.NNNN`, the small state at
each mark. The head (protocol_cache.py) has a checksum for the rows and one for each mark, so that only what
is read needs to be verified: going back to one place of a long conversation does not read the others.
"""

import os
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from dsv4chat.runtime.branches import Branch, Mark
from dsv4chat.runtime.cache import CacheMark, CacheRows
from dsv4chat.runtime.errors import SavedCacheError
from dsv4chat.runtime.protocol_cache import (
    FORMAT_VERSION,
    SUFFIX,
    SavedBranch,
    SavedMark,
    checksum,
    damaged,
    metadata,
    read_head,
)

TEMPORARY = ".writing-"


class SavedFile:
    """A file and its head. Reading raises SavedCacheError when it is gone or not what was written.

    ratios: the cache's, how many tokens a row stands for.
    """

    def __init__(self, path: Path, head: SavedBranch, ratios: tuple[int, ...]) -> None:
        self.path = path
        self.head = head
        self.nbytes = path.stat().st_size
        self._ratios = ratios

    @classmethod
    def open(cls, path: Path, fingerprint: str, ratios: tuple[int, ...]) -> "SavedFile":
        """Read the head of a file and check that it is of this model. Raises SavedCacheError."""
        head = read_head(path)
        if head.fingerprint != fingerprint:
            raise SavedCacheError(
                f"The saved cache {path.name} was made with another model, tokenizer or number format; "
                "its tokens are fed again."
            )
        try:
            return cls(path, head, ratios)
        except OSError:
            raise damaged(path) from None

    @property
    def name(self) -> str:
        """The branch's name."""
        return self.head.name

    def exists(self) -> bool:
        """Whether the file is still there; another program may have made room."""
        return self.path.exists()

    def touch(self, when: int) -> None:
        """Note that it was used, at `when` nanoseconds."""
        with suppress(OSError):
            os.utime(self.path, ns=(when, when))

    def read_rows(self, start: int, end: int) -> CacheRows:
        """The rows of the blocks that positions start..end close, a part of this file's."""
        tensors = self._read("rows", self.head.rows)
        if len(tensors) != len(self._ratios):
            raise damaged(self.path)
        rows = CacheRows(self.head.start, self.head.end, tensors, self._ratios)
        return rows if (start, end) == (rows.start, rows.end) else rows.part(start, end)

    def read_mark(self, position: int) -> CacheMark:
        """The state at `position`."""
        for mark in self.head.marks:
            if mark.position == position:
                return CacheMark(position, self._read(f"mark.{position}", mark.checksum))
        raise damaged(self.path)

    def _read(self, prefix: str, expected: str) -> tuple[Tensor, ...]:
        try:
            # The tensors are copied: they must not change or vanish with the file.
            with safe_open(self.path, framework="pt") as file:
                names = sorted(name for name in file.keys() if name.startswith(f"{prefix}."))  # noqa: SIM118
                tensors = tuple(file.get_tensor(name).clone() for name in names)
        except FileNotFoundError:
            raise SavedCacheError(
                f"The saved cache {self.path.name} is gone; its tokens are fed again."
            ) from None
        except (OSError, SafetensorError):
            raise damaged(self.path) from None
        if _checksum(tensors) != expected:
            raise damaged(self.path)
        return tensors


def write(
    folder: Path,
    branch: Branch,
    rows: CacheRows,
    *,
    conversation: str,
    fingerprint: str,
    model: str,
) -> SavedFile:
    """Write a branch, whose parent is saved already, into `folder`. Raises SavedCacheError."""
    marks = [(mark, mark.state) for mark in branch.marks if mark.state is not None]
    tensors = _named("rows", rows.tensors)
    for mark, state in marks:
        tensors |= _named(f"mark.{mark.position}", state.tensors)
    above = branch.parent.stored if branch.parent is not None else None
    head = SavedBranch(
        version=FORMAT_VERSION,
        conversation=conversation,
        fingerprint=fingerprint,
        model=model,
        name=uuid4().hex,
        parent=above.name if above is not None else "",
        start=branch.start,
        ids=list(branch.ids),  # the branch may be split later
        chunks=list(branch.chunks),
        marks=[
            SavedMark(position=mark.position, boundary=mark.boundary, checksum=_checksum(state.tensors))
            for mark, state in marks
        ],
        rows=_checksum(rows.tensors),
    )
    path = folder / f"{head.name}{SUFFIX}"
    try:
        _write_whole(path, tensors, metadata(head))
        return SavedFile(path, head, rows.ratios)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SavedCacheError(f"The cache could not be saved in {folder} ({reason}).") from None


def attach(root: Branch, files: Iterable[SavedFile]) -> list[str]:
    """Build the tree of the files under `root`; returns sentences about those that have no place in it."""
    notices = []
    pieces: dict[str, list[Branch]] = {"": [root]}
    waiting = sorted(files, key=lambda file: file.head.start)
    while waiting:
        ready = [file for file in waiting if file.head.parent in pieces]
        if not ready:
            break
        waiting = [file for file in waiting if file.head.parent not in pieces]
        for file in ready:
            branch = _attach(pieces[file.head.parent], file)
            if branch is None:
                notices.append(_no_place(file))
            else:
                pieces[file.name] = [branch]
    return notices + [_no_place(file) for file in waiting]


def _attach(parents: list[Branch], file: SavedFile) -> Branch | None:
    """Put a file's branch below the piece of its parent that holds its start."""
    head = file.head
    for parent in parents:
        if parent.parent is None and head.start == 0:
            break
        if parent.start < head.start <= parent.end:
            break
    else:
        return None
    if head.start < parent.end:
        parents.append(parent.split(head.start))
    branch = parent.add_child()
    branch.ids, branch.chunks, branch.stored = list(head.ids), list(head.chunks), file
    branch.marks = [Mark(mark.position, mark.boundary, None, file) for mark in head.marks]
    return branch


def _no_place(file: SavedFile) -> str:
    return f"The saved cache {file.path.name} continues one that is gone; its tokens are fed again."


def _named(prefix: str, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{number:04d}": tensor for number, tensor in enumerate(tensors)}


def _checksum(tensors: Sequence[Tensor]) -> str:
    parts: list[bytes | memoryview] = []
    for tensor in tensors:
        parts.append(f"{tuple(tensor.shape)} {tensor.dtype};".encode())
        parts.append(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return checksum(*parts)


def _write_whole(path: Path, tensors: dict[str, Tensor], head: dict[str, str]) -> None:
    """The file appears under its name when all of it is on the disk, readable by its owner only."""
    _make_private(path.parent)
    handle, temporary = tempfile.mkstemp(prefix=TEMPORARY, dir=path.parent)  # mkstemp: 0600
    os.close(handle)
    try:
        save_file(tensors, temporary, metadata=head)
        os.chmod(temporary, 0o600)
        _sync(temporary)
        os.replace(temporary, path)
        _sync(path.parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _make_private(folder: Path) -> None:
    """Make a folder and those above it that are missing, for their owner only."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)


def _sync(path: Path | str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
