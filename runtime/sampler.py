"""Choosing the next token from one row of logits.

Order: repetition penalty, temperature, top-k, top-p, min-p, one draw by inversion. Arithmetic after the
logits is float64, and the draw depends on (seed, step) alone, so a seed gives the same text on every device
whose logits agree. What is reported about a token (log-probability, alternatives) is the model's own
distribution: no penalty, no temperature, no cut.
"""

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real

import torch
from torch import Tensor

from dsv4chat.runtime.errors import SamplingError
from dsv4chat.runtime.philox import SEED_LIMIT, uniform
from dsv4chat.runtime.protocol import SamplingParams

FIRST_SORTED = 128


@dataclass(frozen=True, slots=True)
class Sampled:
    """One choice. Log-probabilities are natural; `alternatives` are (id, logprob), most probable first."""

    id: int
    logprob: float
    alternatives: tuple[tuple[int, float], ...] = ()


def check_params(params: SamplingParams) -> None:
    """Raise SamplingError naming the parameter that is out of range, and its range."""
    _number("temperature", params.temperature, lambda x: x >= 0, "0 or more (0: the most probable)")
    _number("top_p", params.top_p, lambda x: 0 < x <= 1, "above 0 and at most 1 (1 switches it off)")
    _whole("top_k", params.top_k, 0, None, "a whole number, 0 or more (0 switches it off)")
    _number("min_p", params.min_p, lambda x: 0 <= x <= 1, "between 0 and 1 (0 switches it off)")
    _number("repetition_penalty", params.repetition_penalty, lambda x: x > 0, "above 0 (1 switches it off)")
    _whole("penalty_window", params.penalty_window, 0, None, "a whole number of tokens, 0 or more")
    if params.seed is not None:
        _whole("seed", params.seed, 0, SEED_LIMIT - 1, "a whole number between 0 and 2^64 - 1")
    if params.max_tokens is not None:
        _whole("max_tokens", params.max_tokens, 0, None, "a whole number, 0 or more")


def with_seed(params: SamplingParams) -> SamplingParams:
    """The parameters with a fresh random seed in place of None."""
    if params.seed is not None:
        return params
    fields = {name: getattr(params, name) for name in params.__struct_fields__}
    return SamplingParams(**(fields | {"seed": secrets.randbits(64)}))


def sample(
    logits: Tensor,
    history: Sequence[int],
    params: SamplingParams,
    step: int,
    *,
    vocab_limit: int | None = None,
    alternatives: int = 0,
) -> Sampled:
    """Choose the token of `step` (0 for the turn's first) from `logits` (vocab,).

    history: every id before it, prompt included; the last `params.penalty_window` count for the penalty.
    vocab_limit: ids from here on are rows without a token and are never chosen nor reported.
    Raises SamplingError if no id can be chosen: a NaN, a +inf, or -inf everywhere.
    """
    row = logits[:vocab_limit].double()
    largest = row.max().item() if row.numel() else -math.inf  # a NaN wins over every number
    if not math.isfinite(largest):
        what = "not a number" if math.isnan(largest) else "infinite" if largest > 0 else "all -inf"
        raise unsuitable(what)
    total = row.logsumexp(0)
    penalised = penalise(row, history, params)
    if params.temperature == 0:
        chosen = int(penalised.argmax())  # the first of equals, by torch's documentation
    else:
        if params.seed is None:
            raise SamplingError("Drawing a token needs a seed; take one with with_seed().")
        chosen = _draw(distribution(penalised, params), uniform(params.seed, step))
    return Sampled(chosen, float(row[chosen] - total), _most_probable(row - total, alternatives))


def unsuitable(what: str) -> SamplingError:
    """The error for logits that are `what`."""
    return SamplingError(
        f"The model's logits are {what}, so no token can be chosen; its weights are probably damaged: "
        "check them, or fetch them again."
    )


def penalise(row: Tensor, history: Sequence[int], params: SamplingParams) -> Tensor:
    """`row` (vocab,) float64 with the distinct ids of the recent history penalised."""
    recent = history[max(0, len(history) - params.penalty_window) :]
    ids = sorted({token for token in recent if token < len(row)})
    if params.repetition_penalty == 1 or not ids:
        return row
    index = torch.tensor(ids, device=row.device)
    values = row[index]
    penalty = params.repetition_penalty
    return row.index_copy(0, index, torch.where(values > 0, values / penalty, values * penalty))


def distribution(row: Tensor, params: SamplingParams) -> Tensor:
    """The probabilities (vocab,) float64 to draw from, given penalised logits and a temperature above 0.

    top-k keeps exactly k ids, of equals the lowest; top-p the fewest of the most probable whose sum reaches
    it, at least one; min-p those at least min_p times as probable as the first.
    """
    # The largest is subtracted before dividing: a tiny temperature must not overflow.
    probabilities = torch.softmax((row - row.max()) / params.temperature, 0)
    if not params.top_k and params.top_p == 1 and params.min_p == 0:
        return probabilities
    if params.top_k or params.top_p < 1:
        ids = _nucleus(probabilities, params.top_k or len(probabilities), params.top_p)
        probabilities = torch.zeros_like(probabilities).index_copy(0, ids, probabilities[ids])
    if params.min_p:
        probabilities = probabilities * (probabilities >= params.min_p * probabilities.max())
    return probabilities / probabilities.sum()


def _nucleus(probabilities: Tensor, top_k: int, top_p: float) -> Tensor:
    """The ids that top-k and then top-p leave. Sorts no more than it has to: most ids are far below."""
    if top_p == 1:
        return _largest(probabilities, top_k)
    total = probabilities.sum() if top_k >= len(probabilities) else None
    count = FIRST_SORTED if total is not None else top_k
    while True:
        ids = _largest(probabilities, count)
        kept = probabilities[ids]
        wanted = top_p * (kept.sum() if total is None else total)
        running = kept.cumsum(0)
        if running[-1] >= wanted or count >= top_k:
            return ids[running - kept < wanted]
        count *= 16


def _largest(values: Tensor, count: int) -> Tensor:
    """The ids of the `count` largest values, in falling order, of equals the lowest ids first."""
    if count >= len(values):
        return values.sort(descending=True, stable=True).indices
    least = values.topk(count).values[-1]
    above = (values > least).nonzero()[:, 0]
    equal = (values == least).nonzero()[: count - len(above), 0]
    ids = torch.cat([above, equal])
    return ids[values[ids].sort(descending=True, stable=True).indices]


def _draw(probabilities: Tensor, at: float) -> int:
    """The id in whose interval of the running sum, in order of ids, `at` (0 <= at < 1) falls."""
    running = probabilities.cumsum(0)
    # Scaled by the sum itself, which rounding may leave beside 1.
    chosen = int(torch.searchsorted(running, at * running[-1], right=True))
    return chosen if chosen < len(running) else int(probabilities.nonzero()[-1])


def _most_probable(logprobs: Tensor, count: int) -> tuple[tuple[int, float], ...]:
    if count <= 0:
        return ()
    ids = _largest(logprobs, count)
    pairs = zip(ids.tolist(), logprobs[ids].tolist(), strict=True)
    return tuple((token, value) for token, value in pairs if value > -math.inf)


def _number(name: str, value: object, fits: Callable[[float], bool], range_text: str) -> None:
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if not math.isfinite(number) or not fits(number):
        raise SamplingError(f"{name} is {value!r}; it must be {range_text}.")


def _whole(name: str, value: object, low: int, high: int | None, range_text: str) -> None:
    number = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else low - 1
    if number < low or (high is not None and number > high):
        raise SamplingError(f"{name} is {value!r}; it must be {range_text}.")
