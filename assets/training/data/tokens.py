"""Conversations and documents to token arrays, with the mask of what the model should say."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dsv4chat.encoding import Profile, conversation_from_request, render, template
from dsv4chat.encoding.tokenizer import Tokenizer

from .compose import TASK_TITLE, Sample

_OPENERS = (template.THINK_START, template.THINK_END)


@dataclass(frozen=True)
class Piece:
    """Text or one control token of a rendered conversation, and whether the model should say it."""

    text: str
    control: bool
    spoken: bool


def pieces_of(sample: Sample) -> list[Piece]:
    """The rendered conversation in the preview profile, BOS to EOS.

    Spoken is what follows an opened assistant turn up to and with EOS, but for silent turns; for a title sample
    the title and its EOS as well.
    """
    conversation = conversation_from_request(sample.body)
    task = TASK_TITLE if sample.task_text else None
    rendered = render(conversation, Profile.PREVIEW, task=task, open_turn=False)
    pieces: list[Piece] = []
    speaking, opening, turn = False, False, -1
    for segment in rendered.segments:
        control = segment.kind == "control"
        if control and segment.text == template.ASSISTANT:
            pieces.append(Piece(segment.text, True, False))
            speaking, opening, turn = False, True, turn + 1
        elif opening and control and segment.text in _OPENERS:
            pieces.append(Piece(segment.text, True, False))
            speaking, opening = turn not in sample.silent, False
        else:
            pieces.append(Piece(segment.text, control, speaking))
            if control and segment.text in (template.EOS, template.USER):
                speaking = False
    if sample.task_text:
        pieces += [Piece(sample.task_text, False, True), Piece(template.EOS, True, True)]
    return pieces


class TextEncoder:
    """Ids of many texts at once, each different text encoded a single time."""

    def __init__(self, folder: Path) -> None:
        import tokenizers

        definition = json.loads((folder / "tokenizer.json").read_text("utf-8"))
        self._bpe = tokenizers.Tokenizer.from_str(json.dumps(definition | {"added_tokens": []}))
        self._known: dict[str, NDArray[np.uint16]] = {}
        self.tokenizer = Tokenizer.from_folder(folder)

    def learn(self, texts: Iterable[str], batch: int = 8192) -> None:
        """Encode those of `texts` that are new."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        for start in range(0, len(new), batch):
            part = new[start : start + batch]
            for text, encoded in zip(
                part, self._bpe.encode_batch_fast(part, add_special_tokens=False), strict=True
            ):
                self._known[text] = np.array(encoded.ids, np.uint16)

    def text(self, text: str) -> NDArray[np.uint16]:
        if text not in self._known:
            self.learn([text])
        return self._known[text]


def encode_documents(documents: Sequence[str], encoder: TextEncoder) -> tuple[NDArray, NDArray]:
    """(ids uint16 with EOS after every document, offsets uint32)."""
    end = np.array([encoder.tokenizer.eos_id], np.uint16)
    parts, offsets = [], [0]
    for start in range(0, len(documents), 4096):
        batch = documents[start : start + 4096]
        encoder.learn(batch)
        for document in batch:
            ids = encoder.text(document)
            parts += [ids, end]
            offsets.append(offsets[-1] + len(ids) + 1)
        encoder._known.clear()
    return np.concatenate(parts), np.array(offsets, np.uint32)


def encode_conversations(
    conversations: Iterator[list[Piece]], encoder: TextEncoder, longest: int
) -> tuple[NDArray, NDArray, NDArray]:
    """(ids uint16, offsets uint32, mask uint8); conversations longer than `longest` ids are left out."""
    controls: dict[str, NDArray[np.uint16]] = {}
    ids, mask, offsets = [], [], [0]

    def take(batch: list[list[Piece]]) -> None:
        encoder.learn(p.text for conversation in batch for p in conversation if not p.control)
        for conversation in batch:
            arrays = []
            for piece in conversation:
                if piece.control:
                    if piece.text not in controls:
                        number = encoder.tokenizer.control_id(piece.text)
                        controls[piece.text] = np.array([number], np.uint16)
                    arrays.append(controls[piece.text])
                else:
                    arrays.append(encoder.text(piece.text))
            lengths = [len(array) for array in arrays]
            if sum(lengths) > longest:
                continue
            ids.extend(arrays)
            mask.append(np.repeat(np.array([p.spoken for p in conversation], np.uint8), lengths))
            offsets.append(offsets[-1] + sum(lengths))

    batch: list[list[Piece]] = []
    for conversation in conversations:
        batch.append(conversation)
        if len(batch) == 8192:
            take(batch)
            batch = []
    take(batch)
    return np.concatenate(ids), np.array(offsets, np.uint32), np.concatenate(mask)
