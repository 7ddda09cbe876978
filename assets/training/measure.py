"""Measurements on the training device: held-out loss, and held-out turns answered greedily.

Generation runs the training forward pass on rows divided into equal slots, one conversation a slot, and reads
the logits of each slot's last token: no cache, but hundreds of conversations advance together. Gradients stay
enabled although none is used, so that the compiled functions of the training step serve here as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dsv4chat.assets.training.model import TrainableModel
from dsv4chat.assets.training.packing import LONG_BLOCK, Batch, Documents


def loss_on(model: TrainableModel, batches: Sequence[Batch], *, sparse: bool) -> float:
    """Mean cross-entropy over the targets of `batches`."""
    total, count = 0.0, 0.0
    for batch in batches:
        here = batch.to(model.cos.device)
        weight = float(here.weights.sum())
        total += float(model.loss(here, sparse=sparse)[0].detach()) * weight
        count += weight
    return total / max(count, 1.0)


@dataclass(frozen=True)
class Turn:
    """One held-out assistant turn: the ids before it, and what it should be (EOS included)."""

    document: int
    prompt: list[int]
    expected: list[int]


def last_turns(text: Documents, *, longest: int, longest_answer: int) -> list[Turn]:
    """The last assistant turn of every document that fits: prompt + answer limit within `longest` tokens."""
    turns = []
    for number in range(len(text)):
        first, last = int(text.offsets[number]), int(text.offsets[number + 1])
        ids, mask = text.ids[first:last], text.mask[first:last].astype(bool)
        spoken = np.flatnonzero(mask)
        if not len(spoken):
            continue
        end = int(spoken[-1]) + 1
        gaps = np.flatnonzero(~mask[:end])
        begin = int(gaps[-1]) + 1 if len(gaps) else 0
        if end - begin <= longest_answer and begin + longest_answer <= longest:
            turns.append(Turn(number, ids[:begin].tolist(), ids[begin:end].tolist()))
    return turns


def answer(
    model: TrainableModel,
    prompts: Sequence[Sequence[int]],
    *,
    rows: int,
    row_length: int,
    slot: int,
    new_tokens: int,
    stop_id: int,
    never: Sequence[int] = (),
    sparse: bool = True,
) -> list[list[int]]:
    """Greedy continuations of up to rows * row_length / slot prompts, each up to and with `stop_id`.

    `slot` is a multiple of 128 and holds prompt and answer. Ids in `never` are not chosen.
    """
    device = model.cos.device
    per_row = row_length // slot
    if len(prompts) > rows * per_row:
        raise ValueError(f"{len(prompts)} prompts do not fit into {rows * per_row} slots; give fewer.")
    ids = torch.zeros(rows * per_row, slot, dtype=torch.int64)
    length = torch.ones(rows * per_row, dtype=torch.int64)
    for i, prompt in enumerate(prompts):
        ids[i, : len(prompt)] = torch.tensor(prompt)
        length[i] = len(prompt)
    ids, length = ids.to(device), length.to(device)
    banned = torch.tensor(list(never), dtype=torch.int64, device=device)
    finished = torch.arange(rows * per_row, device=device) >= len(prompts)
    slots = torch.arange(rows * per_row, device=device)
    for _ in range(new_tokens):
        x = model.hidden(_slots_batch(ids, rows, row_length, slot), sparse=sparse).x.detach()
        x = x.reshape(rows * per_row, slot, -1)[slots, length - 1]
        with torch.no_grad():
            logits = model.logits(x)
            logits[:, banned] = float("-inf")
            following = logits.argmax(-1)
        room = length < slot
        going = ~finished & room
        ids[slots, length.clamp(max=slot - 1)] = torch.where(
            going, following, ids[slots, length.clamp(max=slot - 1)]
        )
        length = torch.where(going, length + 1, length)
        finished = finished | (following == stop_id) | ~room
        if bool(finished.all()):
            break
    flat, ends = ids.cpu(), length.cpu()
    return [flat[i, len(prompt) : int(ends[i])].tolist() for i, prompt in enumerate(prompts)]


def _slots_batch(ids: Tensor, rows: int, row_length: int, slot: int) -> Batch:
    device = ids.device
    index = torch.arange(row_length, dtype=torch.int32, device=device)
    start = (index // slot * slot).expand(rows, -1).contiguous()
    blocks = torch.arange(0, row_length, LONG_BLOCK, dtype=torch.int32, device=device).expand(rows, -1)
    flat = ids.reshape(rows, -1)
    if flat.shape[1] < row_length:
        flat = torch.nn.functional.pad(flat, (0, row_length - flat.shape[1]))
    return Batch(flat, flat, torch.zeros_like(flat, dtype=torch.float32), start, blocks.contiguous())
