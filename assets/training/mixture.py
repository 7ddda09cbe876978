"""The stream of training batches: rows of pretraining text and rows of conversations, mixed as the schedule
says.
"""

import ctypes
import multiprocessing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset

from dsv4chat.assets.training.data.corpus import load_corpus
from dsv4chat.assets.training.packing import Batch, Documents, build, pack, shuffled_rows

PADDING_ID = 2
# What prompts weigh in the loss: enough to know how people ask, and how a chat goes on after an answer.
PROMPT_WEIGHT = 0.05


@dataclass(frozen=True)
class Texts:
    """The compiled corpus as documents: trained on (`pretraining`, `conversations`) and never trained on."""

    pretraining: Documents
    conversations: Documents
    heldout: Documents


def load_texts(folder: Path) -> Texts:
    """Read a compiled corpus; raises CorpusError when it is absent or damaged."""
    corpus = load_corpus(folder)
    return Texts(
        Documents(corpus.pretrain_ids, corpus.pretrain_offsets),
        Documents(corpus.conv_ids, corpus.conv_offsets, corpus.conv_mask, rest=PROMPT_WEIGHT),
        Documents(corpus.heldout_ids, corpus.heldout_offsets, corpus.heldout_mask),
    )


class Mixture(IterableDataset):
    """Endless batches. `share` (of rows that are pretraining text) is read anew for each batch and may be set
    from another process.
    """

    def __init__(self, texts: Texts, *, rows: int, row_length: int, seed: int) -> None:
        self.texts, self.rows, self.row_length, self.seed = texts, rows, row_length, seed
        self.share = multiprocessing.Value(ctypes.c_double, 0.0)

    def __iter__(self) -> Iterator[Batch]:
        generator = np.random.default_rng(self.seed)
        texts = (self.texts.pretraining, self.texts.conversations)
        streams = [shuffled_rows(text, self.row_length, generator) for text in texts]
        owed = 0.0  # the share need not be a whole number of rows: what is left carries over
        while True:
            owed += self.rows * self.share.value
            count = min(int(owed), self.rows)
            owed -= count
            parts = [
                build(text, [next(stream) for _ in range(n)], self.row_length, padding=PADDING_ID)
                for text, stream, n in zip(texts, streams, (count, self.rows - count), strict=True)
                if n
            ]
            yield parts[0] if len(parts) == 1 else join(parts)


def join(batches: list[Batch]) -> Batch:
    """One batch of the rows of several."""
    names = Batch.__dataclass_fields__
    return Batch(**{name: torch.cat([getattr(batch, name) for batch in batches]) for name in names})


def stream(mixture: Mixture, device: torch.device) -> Iterator[Batch]:
    """The mixture's batches on `device`, built by another process where there is a GPU to keep busy."""
    if device.type == "cpu":
        yield from mixture
        return
    loader = DataLoader(mixture, batch_size=None, num_workers=1, prefetch_factor=6)
    for batch in loader:
        yield batch.pin().to(device)


def heldout_batches(text: Documents, *, rows: int, row_length: int, limit: int) -> list[Batch]:
    """Up to `limit` batches of held-out documents, the same ones each time."""
    order = np.random.default_rng(0).permutation(len(text))
    packed = pack(text.lengths(), order, row_length)
    packed += [[]] * (-len(packed) % rows)  # empty rows hold padding, which is no target
    groups = [packed[i : i + rows] for i in range(0, len(packed), rows)][:limit]
    return [build(text, group, row_length, padding=PADDING_ID) for group in groups]
