"""The numbers behind the panels: what the engine reported for the last tokens and the last turn. No drawing.

Times in ms. |X| is the largest absolute element of the residual stream after each layer; its envelope is the
smallest and largest value of each layer since the model was loaded.
"""

from collections import deque
from collections.abc import Sequence

WINDOW = 512  # tokens the percentiles are taken over


class LatencyFigures:
    """Latency of the last tokens, and how the last turn began.

    turn fields are None until known: reused and total ids of the prompt, ids fed so far, ms to the first
    token, of which prefill and first decode.
    """

    def __init__(self) -> None:
        self.window: deque[float] = deque(maxlen=WINDOW)
        self.tokens = 0
        self.reused: int | None = None
        self.prompt: int | None = None
        self.fed: int | None = None
        self.first_token: float | None = None
        self.prefill: float | None = None
        self.first_decode: float | None = None
        self._turn_tokens = 0
        self._turn_milliseconds = 0.0
        self._turn_speed: float | None = None

    def clear(self) -> None:
        """Forget all of it: another conversation is shown."""
        self.window.clear()
        self.tokens = 0
        self.begin_turn(None)

    def begin_turn(self, prompt: int | None) -> None:
        """A turn starts; `prompt` is the length of its prompt in ids."""
        self.prompt = prompt
        self.reused = self.fed = self.first_token = self.prefill = self.first_decode = None
        self._turn_tokens = 0
        self._turn_milliseconds = 0.0
        self._turn_speed = None

    def end_turn(self, tokens_per_second: float) -> None:
        """The turn is over; from now on the engine's own figure of its speed is shown."""
        self._turn_speed = tokens_per_second

    def token(self, milliseconds: float) -> None:
        """One more token."""
        self.window.append(milliseconds)
        self.tokens += 1
        self._turn_tokens += 1
        self._turn_milliseconds += milliseconds

    @property
    def last(self) -> float | None:
        """ms of the last token."""
        return self.window[-1] if self.window else None

    @property
    def tokens_per_second(self) -> float | None:
        """Of this turn, prefill left out; None before its first token."""
        if self._turn_speed:
            return self._turn_speed
        if not self._turn_tokens or self._turn_milliseconds <= 0:
            return None
        return 1000 * self._turn_tokens / self._turn_milliseconds

    def percentiles(self) -> tuple[float, float, float] | None:
        """(p50, p95, max) over the window: the smallest value that at least so many percent do not exceed."""
        if not self.window:
            return None
        ordered = sorted(self.window)
        return _percentile(ordered, 50), _percentile(ordered, 95), ordered[-1]


class ResidualFigures:
    """|X| of the last tokens; `kinds` names the attention of each layer ("window", "csa", "hca")."""

    def __init__(self, kinds: Sequence[str] = (), kept: int = 128) -> None:
        self.rows: deque[tuple[float, ...]] = deque(maxlen=kept)
        self._peaks: deque[float] = deque(maxlen=WINDOW)
        self.reset(kinds)

    def reset(self, kinds: Sequence[str]) -> None:
        """Forget everything: another model."""
        self.kinds = tuple(kinds)
        self.low: list[float] = []
        self.high: list[float] = []
        self.tokens = 0
        self.rows.clear()
        self._peaks.clear()

    def clear(self) -> None:
        """Forget the tokens: another conversation is shown. What is usual for the model stays."""
        self.rows.clear()

    def token(self, residual: Sequence[float]) -> None:
        """The profile of one more token; an empty one (an engine that does not report it) is left out."""
        if not residual:
            return
        row = tuple(residual)
        if len(row) != len(self.low):
            self.rows.clear()
            self.low, self.high = list(row), list(row)
        else:
            self.low = list(map(min, self.low, row))
            self.high = list(map(max, self.high, row))
        self.rows.append(row)
        self._peaks.append(max(row))
        self.tokens += 1

    @property
    def last(self) -> tuple[float, ...] | None:
        """The profile of the last token."""
        return self.rows[-1] if self.rows else None

    def usual_peak(self) -> tuple[float, float] | None:
        """Between which two values the largest |X| of a token lies for 90 % of the last tokens."""
        if not self._peaks:
            return None
        ordered = sorted(self._peaks)
        return _percentile(ordered, 5), _percentile(ordered, 95)


def _percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]
