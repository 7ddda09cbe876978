"""Choosing the next token on the device: `runtime.sampler` in static shapes.

The order, the formulae and the float64 arithmetic are that module's, so that the same logits give the same
token. What the host knows before a step picks one of three forms of it: "greedy" (temperature 0), "draw"
(no cut), "nucleus" (top-k, top-p or min-p).
"""

from typing import Literal

import torch
from torch import Tensor

from dsv4chat.runtime.gpu.state import DRAWS, StepState
from dsv4chat.runtime.protocol import SamplingParams

Kind = Literal["greedy", "draw", "nucleus"]

ALTERNATIVES = 8

# What became of a step.
CHOSEN, STOPPED, NOT_A_NUMBER, INFINITE, NOTHING, SKIPPED = range(6)


def kind_of(params: SamplingParams) -> Kind:
    """The form of the sampler these parameters need."""
    if params.temperature == 0:
        return "greedy"
    return "nucleus" if params.top_k or params.top_p < 1 or params.min_p else "draw"


def choose(logits: Tensor, state: StepState, kind: Kind) -> tuple[Tensor, Tensor, Tensor]:
    """From logits (vocab,) float32: the id (1,) int64, what became of it (1,) int64, and what is reported:
    (1 + 2 * ALTERNATIVES,) float64, the log-probability and the most probable ids and theirs.
    """
    chosen = token_of(logits, state, kind)
    row = logits.double()
    largest = row.amax(0, keepdim=True)
    total = (row - largest).exp().sum(0, keepdim=True).log() + largest
    return chosen, _outcome(largest, chosen, state), _report(logits, row, total, chosen)


def token_of(logits: Tensor, state: StepState, kind: Kind) -> Tensor:
    """The chosen id alone, (1,) int64."""
    row = logits.double()
    penalised = torch.where(row > 0, row / state.penalty, row * state.penalty)
    penalised = torch.where(state.counts[: row.shape[0]] > 0, penalised, row)
    if kind == "greedy":
        chosen = penalised.argmax(0, keepdim=True)
    else:
        probabilities = torch.softmax((penalised - penalised.amax()) / state.temperature, 0)
        if kind == "nucleus":
            probabilities = _cut(probabilities, state)
        chosen = _draw(probabilities, state.draws.index_select(0, state.number % DRAWS))
    return chosen.clamp(0, row.shape[0] - 1)


def _cut(probabilities: Tensor, state: StepState) -> Tensor:
    """top-k, top-p, min-p."""
    kept, ids = probabilities.sort(descending=True, stable=True)
    rank = torch.arange(kept.shape[0], device=kept.device)
    in_top_k = rank < state.top_k
    kept = torch.where(in_top_k, kept, 0.0)
    running = kept.cumsum(0)
    total = torch.where(state.top_k >= kept.shape[0], probabilities.sum(), kept.sum())
    taken = in_top_k & ((state.top_p >= 1) | (running - kept < state.top_p * total))
    probabilities = torch.zeros_like(kept).scatter_(0, ids, torch.where(taken, kept, 0.0))
    probabilities = probabilities * (probabilities >= state.min_p * probabilities.amax())
    return probabilities / probabilities.sum()


def _draw(probabilities: Tensor, at: Tensor) -> Tensor:
    running = probabilities.cumsum(0)
    chosen = torch.searchsorted(running, at * running[-1], right=True)
    last = (torch.arange(running.shape[0], device=running.device) * (probabilities > 0)).amax()
    return torch.where(chosen < running.shape[0], chosen, last)


def _outcome(largest: Tensor, chosen: Tensor, state: StepState) -> Tensor:
    stopped = state.stops.index_select(0, chosen)
    outcome = torch.where(stopped, STOPPED, CHOSEN)
    outcome = torch.where(largest == -torch.inf, NOTHING, outcome)
    outcome = torch.where(largest == torch.inf, INFINITE, outcome)
    outcome = torch.where(largest.isnan(), NOT_A_NUMBER, outcome)
    return torch.where(state.alive, outcome, SKIPPED)


def _report(logits: Tensor, row: Tensor, total: Tensor, chosen: Tensor) -> Tensor:
    count = min(ALTERNATIVES, logits.shape[0])
    ids = _highest(logits, count)
    values = row.index_select(0, torch.cat([chosen, ids])) - total
    if count == ALTERNATIVES:
        return torch.cat([values[:1], ids.double(), values[1:]])
    padding = row.new_full((ALTERNATIVES - count,), -torch.inf)
    return torch.cat([values[:1], ids.double(), padding, values[1:], padding])


def _highest(logits: Tensor, count: int) -> Tensor:
    """The ids of the highest, in falling order, of equals the lowest first: (count,) int64.

    `topk` leaves the order of equals open, so that it is given keys that differ: a logit's bits in the order
    of numbers, and below them the id.
    """
    bits = (logits + 0.0).view(torch.int32)  # + 0: of the two zeros one is left
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    keys = (ordered.long() << 32) - torch.arange(logits.shape[0], device=logits.device)
    return (-keys.topk(count).values) & 0xFFFFFFFF
