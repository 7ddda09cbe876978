"""The head of a saved cache file: what it holds and whose it is. Without torch or numpy.

A file is a safetensors file with two entries of metadata: `dsv4chat`, a `SavedBranch` as JSON, and
`checksum`, the checksum of that JSON. Anyone can read the head without the data behind it; `dsv4chat cache
list` does.
"""

import hashlib
from pathlib import Path

import msgspec

from dsv4chat.runtime.errors import SavedCacheError

__all__ = [
    "FORMAT_VERSION",
    "SUFFIX",
    "SavedBranch",
    "SavedCacheError",
    "SavedMark",
    "checksum",
    "damaged",
    "metadata",
    "read_head",
]

FORMAT_VERSION = 1
SUFFIX = ".safetensors"
METADATA_KEY, CHECKSUM_KEY = "dsv4chat", "checksum"
MAX_HEADER_BYTES = 100_000_000  # of the safetensors format


class SavedMark(msgspec.Struct, frozen=True, kw_only=True):
    """A mark in the file. boundary: a caller asked for it. checksum: of its tensors."""

    position: int
    boundary: bool
    checksum: str


class SavedBranch(msgspec.Struct, frozen=True, kw_only=True):
    """A branch of a conversation's tree: the ids after position `start`, with their rows and marks.

    fingerprint: of the model, tokenizer and number formats that made it. model: its name, for people.
    name, parent: of this file and of the one it continues ("" at the conversation's start).
    chunks: sizes the ids were fed in. rows: checksum of the compressed rows.
    """

    version: int
    conversation: str
    fingerprint: str
    model: str
    name: str
    parent: str
    start: int
    ids: list[int]
    chunks: list[int]
    marks: list[SavedMark]
    rows: str

    @property
    def end(self) -> int:
        """The position after its last id."""
        return self.start + len(self.ids)


class _Version(msgspec.Struct):
    version: int = 0


class _Described(msgspec.Struct):
    """A tensor in a safetensors header; the defaults let the metadata pass as one."""

    data_offsets: tuple[int, int] = (0, 0)


def checksum(*parts: bytes | memoryview) -> str:
    """The checksum used throughout: BLAKE2b, 16 bytes, as hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def metadata(head: SavedBranch) -> dict[str, str]:
    """What to put into the safetensors header."""
    text = msgspec.json.encode(head).decode()
    return {METADATA_KEY: text, CHECKSUM_KEY: checksum(text.encode())}


def read_head(path: Path) -> SavedBranch:
    """The head of a file. Raises SavedCacheError: it is gone, damaged, or of another version."""
    try:
        with path.open("rb") as file:
            start = file.read(8)
            length = int.from_bytes(start, "little")
            raw = file.read(length) if len(start) == 8 and length <= MAX_HEADER_BYTES else b""
            size = file.seek(0, 2)
    except OSError as error:
        raise SavedCacheError(
            f"The saved cache {path.name} cannot be read ({error.strerror}); its tokens are fed again."
        ) from None
    try:
        header = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        given = msgspec.json.decode(header.pop("__metadata__"), type=dict[str, str])
        text = given[METADATA_KEY].encode()
        version = msgspec.json.decode(text, type=_Version).version
        needed = max(
            (msgspec.json.decode(entry, type=_Described).data_offsets[1] for entry in header.values()),
            default=0,
        )
    except (msgspec.DecodeError, KeyError, UnicodeError):
        raise damaged(path) from None
    if version != FORMAT_VERSION:
        raise SavedCacheError(
            f"The saved cache {path.name} was written by another version of dsv4chat; "
            "its tokens are fed again."
        )
    if checksum(text) != given.get(CHECKSUM_KEY) or size != 8 + length + needed:
        raise damaged(path)
    try:
        return msgspec.json.decode(text, type=SavedBranch)
    except msgspec.DecodeError:
        raise damaged(path) from None


def damaged(path: Path) -> SavedCacheError:
    """The error of a file whose content is not what was written."""
    return SavedCacheError(f"The saved cache {path.name} is damaged or cut short; its tokens are fed again.")
