"""One turn on a session: prefill what is new, then sample, hand out and feed tokens until it ends."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from dsv4chat.encoding import Tokenizer
from dsv4chat.runtime.errors import EngineError
from dsv4chat.runtime.protocol import Alternative, SamplingParams
from dsv4chat.runtime.sampler import Sampled
from dsv4chat.runtime.session import Session
from dsv4chat.runtime.steps import steps_for

PrefillProgress = Callable[[int, int, int], None]


@dataclass(frozen=True, slots=True)
class Token:
    """One generated token (never the stop token).

    text: the characters it completes; "" inside a character, or without a tokenizer.
    milliseconds: of the decode step that chose it, prefill excluded.
    logprob: natural, of the model's own distribution.
    residual: |X|, the largest absolute element of the residual stream after each layer, in that step.
    alternatives: the most probable tokens at that step, as many as were asked for.
    """

    id: int
    text: str
    milliseconds: float
    logprob: float
    residual: list[float]
    alternatives: list[Alternative] = field(default_factory=list)


@dataclass(slots=True)
class TurnReport:
    """What a turn did. Final once its iterator has ended.

    reused: ids of the prompt found in the cache; prefilled: ids fed before the first token was sampled.
    restored: where the state of the reused ids was: "memory", "disk", or "none" when nothing was reused.
    reason: "stop" (end token), "length" (max_tokens or context), "stopped" (on request), "failed".
    stop_id: the sampled stop token, which was neither handed out nor fed.
    tail: U+FFFD if the text ended inside a character.
    ttft_ms: to the first token; of it prefill_ms for all but the prompt's last id, first_decode_ms for that.
        Both None when the turn ended before a token was sampled.
    chunks: sizes of all chunks, from position 0, that led to the cache's state at the end.
    room: ids that still fit into the context after it.
    notices: sentences about saved caches that could not be used or written.
    """

    prompt_tokens: int = 0
    reused: int = 0
    prefilled: int = 0
    tokens: int = 0
    reason: str = "stopped"
    stop_id: int | None = None
    tail: str = ""
    ttft_ms: float | None = None
    prefill_ms: float = 0.0
    first_decode_ms: float | None = None
    decode_ms: float = 0.0
    seed: int | None = None
    chunks: tuple[int, ...] = ()
    restored: str = "none"
    room: int = 0
    notices: list[str] = field(default_factory=list)

    @property
    def tokens_per_second(self) -> float:
        """Of the decode steps alone; 0 without a token."""
        return 1000 * self.tokens / self.decode_ms if self.tokens else 0.0


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """What to generate. params: with a seed. limit: the most tokens. stop_ids: what ends the turn."""

    ids: list[int]
    params: SamplingParams
    limit: int
    stop_ids: frozenset[int]
    tokenizer: Tokenizer | None
    boundaries: Sequence[int] = ()
    alternatives: int = 0

    @property
    def vocab_limit(self) -> int | None:
        """Ids from here on have no token and are never chosen."""
        return self.tokenizer.vocab_size if self.tokenizer else None

    @property
    def stops(self) -> frozenset[int]:
        """The ids that end this turn."""
        return frozenset() if self.params.ignore_eos else self.stop_ids


def run_turn(
    session: Session,
    request: TurnRequest,
    report: TurnReport,
    should_stop: Callable[[], bool],
    on_prefill: PrefillProgress,
) -> Iterator[Token]:
    """The tokens of one turn; `report` is filled in on the way and final however the iterator ends.

    should_stop is asked between chunks and between tokens. on_prefill is called with (ids fed, ids to feed,
    ids reused), first before anything is fed. Closing the iterator early costs one step.
    """
    clock = _Clock()
    ids, tokenizer = request.ids, request.tokenizer
    decoder = tokenizer.decoder() if tokenizer else None
    try:
        plan = session.prepare(ids, request.boundaries)
        report.prompt_tokens, report.reused, report.seed = len(ids), plan.reused, request.params.seed
        report.restored = plan.source
        to_feed = len(ids) - plan.reused
        on_prefill(0, to_feed, plan.reused)
        steps = steps_for(session, request, plan.turn)
        for size in plan.chunks:
            if should_stop():
                return
            if session.position == len(ids) - 1:
                report.prefill_ms = clock.elapsed()
                clock.lap()
                steps.start()
            else:
                session.feed(ids[session.position : session.position + size], plan.turn)
            report.prefilled += size
            on_prefill(report.prefilled, to_feed, plan.reused)
        while True:
            if report.tokens >= request.limit:
                report.reason = "length"
                return
            if should_stop():
                return
            choice = steps.next()
            sampled = choice.sampled
            milliseconds = clock.lap()
            report.decode_ms += milliseconds
            if report.ttft_ms is None:
                report.first_decode_ms, report.ttft_ms = milliseconds, clock.elapsed()
            if choice.stops:
                report.reason, report.stop_id = "stop", sampled.id
                return
            report.tokens += 1
            token = Token(
                id=sampled.id,
                text=decoder.push(sampled.id) if decoder else "",
                milliseconds=milliseconds,
                logprob=sampled.logprob,
                residual=choice.residual,
                alternatives=_alternatives(sampled, tokenizer),
            )
            # A token that was handed out is fed even when it is the last one, whoever ended the turn: the
            # next turn then prefills only what is new.
            try:
                yield token
            except GeneratorExit:
                with suppress(EngineError):  # another turn has begun: nothing to keep
                    steps.keep()
                raise
            clock.lap()
            steps.keep()
    except GeneratorExit:
        raise
    except BaseException:
        report.reason = "failed"
        raise
    finally:
        report.chunks = tuple(session.chunks)
        report.tail = decoder.flush() if decoder else ""


def _alternatives(choice: Sampled, tokenizer: Tokenizer | None) -> list[Alternative]:
    return [
        Alternative(token, tokenizer.token_text(token) if tokenizer else "", logprob)
        for token, logprob in choice.alternatives
    ]


class _Clock:
    """Milliseconds since the start, and since the last lap."""

    def __init__(self) -> None:
        self._start = self._last = time.perf_counter()

    def elapsed(self) -> float:
        return (time.perf_counter() - self._start) * 1000

    def lap(self) -> float:
        before, self._last = self._last, time.perf_counter()
        return (self._last - before) * 1000
