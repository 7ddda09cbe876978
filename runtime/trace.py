"""What a forward pass did inside, kept on request for comparisons with another implementation."""

from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True)
class Choice:
    """A top-k decision for the tokens of a pass from `first` on.

    scores: (t, m) float32, what was ranked, -inf where a candidate was not allowed.
    chosen: (t, k), candidates taken, -1 = none.
    """

    first: int
    scores: Tensor
    chosen: Tensor


@dataclass
class LayerTrace:
    """One layer.

    streams: (n, s, hidden) after it; blocks: the indexer's choices, where there was one to make; experts: the
    router's choices (none in hash layers).
    """

    blocks: list[Choice] = field(default_factory=list)
    experts: list[Choice] = field(default_factory=list)
    streams: Tensor | None = None


Trace = list[LayerTrace]
