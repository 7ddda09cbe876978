"""The compiled training corpus on disk: token arrays that the trainer reads with numpy alone.

A corpus folder holds `corpus.json` (vocabulary size, seed, counts, sha256 of every array) and one xz file of
raw little-endian numbers for each array:

    pretrain_ids      uint16 (P,)    documents back to back, each ends with EOS, none begins with BOS
    pretrain_offsets  uint32 (D+1,)  document d is pretrain_ids[offsets[d]:offsets[d+1]]
    conv_ids          uint16 (C,)    whole rendered conversations, BOS ... EOS, in random order
    conv_offsets      uint32 (N+1,)
    conv_mask         uint8  (C,)    1: this token is something the model should say (in an assistant turn,
                                     </think> and EOS included); 0: prompt, tools, user text, <think> openers.
                                     mask[i] belongs to ids[i] as a *target*
                                     (zeros may get a small weight, so that text after EOS stays sensible)
    heldout_ids / heldout_offsets / heldout_mask   the same for conversations never trained on
"""

from __future__ import annotations

import hashlib
import json
import lzma
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_DTYPES = {"ids": np.dtype("<u2"), "offsets": np.dtype("<u4"), "mask": np.dtype("u1")}
_XZ_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 4, "dict_size": 1 << 26}]


class CorpusError(Exception):
    """The corpus folder is missing, incomplete or damaged; the message says which file and what to do."""


@dataclass(frozen=True)
class Corpus:
    """All arrays of a compiled corpus (dtypes and shapes: see the module's docstring)."""

    pretrain_ids: NDArray[np.uint16]
    pretrain_offsets: NDArray[np.uint32]
    conv_ids: NDArray[np.uint16]
    conv_offsets: NDArray[np.uint32]
    conv_mask: NDArray[np.uint8]
    heldout_ids: NDArray[np.uint16]
    heldout_offsets: NDArray[np.uint32]
    heldout_mask: NDArray[np.uint8]


def save_corpus(
    folder: Path, corpus: Corpus, *, vocab_size: int, seed: int, notes: dict[str, object]
) -> dict:
    """Write `corpus` under `folder` and return the contents of its corpus.json.

    `notes` (counts a category and the like) is stored as it is. The same arrays give the same files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {}
    for field in fields(corpus):
        dtype = _DTYPES[field.name.rsplit("_", 1)[1]]
        array = np.ascontiguousarray(getattr(corpus, field.name), dtype=dtype)
        raw = array.tobytes()
        (folder / f"{field.name}.bin.xz").write_bytes(
            lzma.compress(raw, format=lzma.FORMAT_XZ, filters=_XZ_FILTERS)
        )
        arrays[field.name] = {"count": int(array.size), "sha256": hashlib.sha256(raw).hexdigest()}
    header = {"format": 1, "vocab_size": vocab_size, "seed": seed, "arrays": arrays, "notes": notes}
    (folder / "corpus.json").write_text(json.dumps(header, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return header


def load_corpus(folder: Path | str) -> Corpus:
    """Read a folder written by `save_corpus`, checking every array against its sha256.

    Raises CorpusError when a file is absent or damaged.
    """
    folder = Path(folder)
    try:
        header = json.loads((folder / "corpus.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CorpusError(
            f"{folder}/corpus.json cannot be read ({error}); build the corpus first."
        ) from error
    arrays = {}
    for field in fields(Corpus):
        path = folder / f"{field.name}.bin.xz"
        expected = header["arrays"][field.name]
        try:
            raw = lzma.decompress(path.read_bytes())
        except (OSError, lzma.LZMAError, EOFError) as error:
            raise CorpusError(f"{path} cannot be read ({error}); build the corpus again.") from error
        if hashlib.sha256(raw).hexdigest() != expected["sha256"]:
            raise CorpusError(f"{path} does not match its checksum in corpus.json; build the corpus again.")
        arrays[field.name] = np.frombuffer(raw, dtype=_DTYPES[field.name.rsplit("_", 1)[1]])
    return Corpus(**arrays)


def document(ids: NDArray[np.uint16], offsets: NDArray[np.uint32], index: int) -> NDArray[np.uint16]:
    """The ids of document `index`, shape (length,)."""
    return ids[int(offsets[index]) : int(offsets[index + 1])]
