"""Cut a small corpus out of the whole one, for the smoke run: `python -m dsv4chat.assets.training.slice`."""

import argparse
import itertools
from pathlib import Path

import numpy as np

from dsv4chat.assets.training.data.corpus import Corpus, load_corpus, save_corpus
from dsv4chat.assets.training.settings import HERE

LONGEST = 256


def first_documents(
    ids: np.ndarray, offsets: np.ndarray, mask: np.ndarray | None, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The first `count` documents of at most LONGEST tokens."""
    pairs = itertools.pairwise(offsets.tolist())
    bounds = [(first, last) for first, last in pairs if 0 < last - first <= LONGEST][:count]
    chosen = np.concatenate([np.arange(a, b) for a, b in bounds])
    sizes = [b - a for a, b in bounds]
    return ids[chosen], np.cumsum([0, *sizes]), None if mask is None else mask[chosen]


def main() -> None:
    """Read the arguments and write the slice."""
    parser = argparse.ArgumentParser(prog="python -m dsv4chat.assets.training.slice")
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=HERE / "smoke")
    parser.add_argument("--documents", type=int, default=60)
    given = parser.parse_args()
    whole = load_corpus(given.corpus)
    pretrain = first_documents(whole.pretrain_ids, whole.pretrain_offsets, None, given.documents)
    conv = first_documents(whole.conv_ids, whole.conv_offsets, whole.conv_mask, given.documents)
    held = first_documents(whole.heldout_ids, whole.heldout_offsets, whole.heldout_mask, 10)
    part = Corpus(pretrain[0], pretrain[1], *conv, *held)
    save_corpus(given.out, part, vocab_size=8192, seed=0, notes={"slice": "for the smoke run"})


if __name__ == "__main__":
    main()
