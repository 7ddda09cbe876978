"""Comparison of the runtime with `transformers` on the same weights: streams of each layer, choices, logits.

A difference between two float32 implementations is rounding, or a mistake. Rounding can also turn a top-k
decision whose candidates lie closer together than the rounding itself; from there on the two compute
different things. Such a decision is accepted as equal, and what depends on it left out, only if in the
reference's own scores the candidates exchanged lie no further apart than twice the scores' measured
difference elsewhere, which itself has to be of the size of rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.model import Model
from dsv4chat.runtime.reference import Reference
from dsv4chat.runtime.trace import Choice, LayerTrace, Trace

TOLERANCE = 1e-4
ROUNDING = 1e-4  # of scores, relative to the largest: what float32 arithmetic may differ by


@dataclass(frozen=True)
class LayerDifference:
    """Streams after one layer. difference: the largest of any element; largest: |X| of the reference;
    relative: difference / max(1, largest); token: where it is largest."""

    layer: int
    kind: str
    difference: float
    largest: float
    token: int

    @property
    def relative(self) -> float:
        return self.difference / max(1.0, self.largest)


@dataclass(frozen=True)
class Turned:
    """A decision the two sides took differently. what: "blocks" or "experts".

    margin: how far apart, in the reference's scores, the candidates exchanged lie. bound: twice the largest
    difference of scores measured where both decided alike. Rounding explains it if margin <= bound.
    """

    layer: int
    token: int
    what: str
    margin: float
    bound: float

    @property
    def explained(self) -> bool:
        return self.margin <= self.bound


@dataclass(frozen=True)
class Comparison:
    """layers: all layers; logits: the largest difference of any token's logits, at `logits_token`.

    turned: decisions taken differently, of the first layer that has any (those of later layers follow from
    it). Figures exclude what depends on them: all later layers' and the logits' tokens from the first
    turned on. compared: how many tokens' logits were compared.
    """

    tokens: int
    compared: int
    layers: tuple[LayerDifference, ...]
    logits: float
    logits_token: int
    same_argmax: bool
    turned: tuple[Turned, ...]

    def first_over(self, tolerance: float) -> int | None:
        """First layer whose relative difference exceeds the tolerance."""
        return next((d.layer for d in self.layers if not d.relative <= tolerance), None)

    def passes(self, tolerance: float) -> bool:
        """Logits within the tolerance, and every turned decision explained by rounding."""
        return self.logits <= tolerance and all(turned.explained for turned in self.turned)


@dataclass(frozen=True)
class Run:
    """What one side computed: logits (n, vocab), and one merged trace a layer."""

    logits: Tensor
    layers: list[LayerTrace]


def run_model(model: Model, ids: Tensor, chunks: Sequence[int], kv_dtype: str = "float32") -> Run:
    """Feed ids (n,) to a fresh cache in chunks, traced."""
    cache = KVCache(model.config, kv_dtype, max(1, ids.shape[0]), model.device)
    logits, traces = [], []
    for piece in torch.split(ids, list(chunks)):
        trace: Trace = []
        logits.append(model.forward(piece, cache, "all", trace).logits)
        traces.append(trace)
    return Run(torch.cat(logits), _merged(traces, chunks))


def run_reference(reference: Reference, ids: Tensor) -> Run:
    """Feed ids (n,) at once from the start, traced."""
    reference.clear()
    trace: Trace = []
    return Run(reference.forward(ids, trace), trace)


def compare(config: ModelConfig, ours: Run, theirs: Run) -> Comparison:
    """Differences between two runs over the same tokens."""
    tokens = valid = ours.logits.shape[0]
    turned: tuple[Turned, ...] = ()
    layers = []
    for layer, (mine, other) in enumerate(zip(ours.layers, theirs.layers, strict=True)):
        keep = torch.arange(tokens) < valid
        if not turned:
            turned = tuple(_turned(layer, mine, other))
            keep[[decision.token for decision in turned]] = False
            valid = min([tokens, *(decision.token for decision in turned)])
        layers.append(_layer_difference(layer, config.layer_kind(layer), mine, other, keep))
    difference = (ours.logits[:valid] - theirs.logits[:valid]).abs()
    worst = difference.amax(1) if valid else torch.zeros(1)
    return Comparison(
        tokens=tokens,
        compared=valid,
        layers=tuple(layers),
        logits=float(worst.max()),
        logits_token=int(worst.argmax()),
        same_argmax=bool((ours.logits[:valid].argmax(1) == theirs.logits[:valid].argmax(1)).all()),
        turned=turned,
    )


def _layer_difference(
    layer: int, kind: str, mine: LayerTrace, other: LayerTrace, keep: Tensor
) -> LayerDifference:
    """Over the tokens in `keep` (n,) bool."""
    assert mine.streams is not None
    assert other.streams is not None
    difference = (mine.streams - other.streams).float().abs().flatten(1).amax(1).masked_fill_(~keep, 0.0)
    largest = other.streams.abs().flatten(1).amax(1).masked_fill(~keep, 0.0)
    return LayerDifference(
        layer, kind, float(difference.max()), float(largest.max()), int(difference.argmax())
    )


def closest(ours: Run, theirs: Run, token: int) -> Turned | None:
    """The decision of the reference for `token` or one before it that rounding explains best, if it does any.

    For a run that was not traced and went another way: `ours` is a traced run of the same tokens, whose
    scores measure the error of scores.
    """
    best: Turned | None = None
    for layer, (mine, other) in enumerate(zip(ours.layers, theirs.layers, strict=True)):
        for what in ("blocks", "experts"):
            own, reference = getattr(mine, what), getattr(other, what)
            bound = 2 * _measured_error(own, reference)
            for row, scores, chosen in _rows(reference):
                margin = _margin(scores, int((chosen >= 0).sum()))
                if row <= token and margin <= bound and (best is None or margin < best.margin):
                    best = Turned(layer, row, what, margin, bound)
    return best


def _turned(layer: int, mine: LayerTrace, other: LayerTrace) -> list[Turned]:
    """Decisions of one layer that differ: blocks first, since the experts follow them."""
    for what in ("blocks", "experts"):
        own, reference = getattr(mine, what), getattr(other, what)
        theirs = {row: (scores, _members(chosen)) for row, scores, chosen in _rows(reference)}
        differing = [
            (row, theirs[row][0], _members(chosen), theirs[row][1])
            for row, _, chosen in _rows(own)
            if _members(chosen) != theirs[row][1]
        ]
        if differing:
            bound = 2 * _measured_error(own, reference)
            return [
                Turned(layer, row, what, _exchanged(scores, gained, lost), bound)
                for row, scores, gained, lost in differing
            ]
    return []


def _measured_error(mine: Sequence[Choice], other: Sequence[Choice]) -> float:
    """Largest difference of scores over the decisions that both sides took alike.

    A difference beyond ROUNDING of the scores' size is a mistake, and counts only up to there.
    """
    theirs = {row: (scores, _members(chosen)) for row, scores, chosen in _rows(other)}
    error = size = 0.0
    for row, scores, chosen in _rows(mine):
        reference, members = theirs[row]
        if members == _members(chosen):
            difference = torch.where(torch.isfinite(scores), scores - reference[: scores.shape[0]], 0.0)
            error = max(error, float(difference.abs().max()))
        size = max(size, float(torch.where(torch.isfinite(reference), reference, 0.0).abs().max()))
    return min(error, ROUNDING * max(1.0, size))


def _exchanged(scores: Tensor, gained: set[int], lost: set[int]) -> float:
    """How far apart the candidates lie that one side has and the other has not."""
    ours, theirs = gained - lost, lost - gained
    if len(ours) != len(theirs):
        return float("inf")
    return max(float(scores[i]) for i in theirs) - min(float(scores[i]) for i in ours)


def _margin(scores: Tensor, k: int) -> float:
    """Between the last candidate taken and the first left out; inf where none was left out."""
    allowed = scores[torch.isfinite(scores)]
    if allowed.shape[0] <= k:
        return float("inf")
    highest = allowed.topk(k + 1).values
    return float(highest[k - 1] - highest[k])


def _members(chosen: Tensor) -> set[int]:
    return set(chosen[chosen >= 0].tolist())


def _rows(choices: Sequence[Choice]) -> list[tuple[int, Tensor, Tensor]]:
    """Token, scores and chosen of every decision."""
    return [
        (choice.first + i, choice.scores[i], choice.chosen[i])
        for choice in choices
        for i in range(choice.chosen.shape[0])
    ]


def _merged(traces: list[Trace], chunks: Sequence[int]) -> list[LayerTrace]:
    """Traces of consecutive chunks as one a layer, tokens counted from the first chunk's start."""
    merged = []
    for layer in range(len(traces[0])):
        whole = LayerTrace()
        streams, start = [], 0
        for trace, size in zip(traces, chunks, strict=True):
            part = trace[layer]
            assert part.streams is not None
            streams.append(part.streams)
            whole.blocks += [Choice(c.first + start, c.scores, c.chosen) for c in part.blocks]
            whole.experts += [Choice(c.first + start, c.scores, c.chosen) for c in part.experts]
            start += size
        whole.streams = torch.cat(streams)
        merged.append(whole)
    return merged
