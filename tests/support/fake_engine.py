"""An engine for tests of the app: the interface of `EngineProcess`, answers from a script, no process."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dsv4chat.encoding import Tokenizer
from dsv4chat.engine_process import EngineDied, EngineFailed, Hang
from dsv4chat.runtime.protocol import (
    PROTOCOL_VERSION,
    Alternative,
    Finished,
    Hello,
    Load,
    Loading,
    Prefill,
    Ready,
    SamplingParams,
    Token,
)
from dsv4chat.runtime.protocol_conversations import ConversationCache, Resumed, Saved

LAYER_KINDS = ("window", "csa", "hca", "csa", "hca", "csa", "window", "csa")


class FakeCaches:
    """What was asked about caches, by conversation. figures, notices, fails: what is answered.

    fed: what each conversation was fed in all its turns, for `measure`.
    """

    def __init__(self) -> None:
        self.fed: dict[str, list[list[int]]] = {}
        self.saved: list[str] = []
        self.resumed: list[str] = []
        self.figures: list[ConversationCache] = []
        self.notices: list[str] = []
        self.fails: Exception | None = None
        self.slow = False

    async def save(self, conversation: str) -> Saved:
        self.saved.append(conversation)
        while self.slow:
            await asyncio.sleep(0.01)
        if self.fails is not None:
            raise self.fails
        return Saved(number=1, files=1, bytes=1000, seconds=0.1)

    async def resume(self, conversation: str) -> Resumed:
        self.resumed.append(conversation)
        return Resumed(number=1, tokens=10, bytes=1000, seconds=0.1, notices=self.notices)

    async def measure(self, conversation: str, ids: Sequence[int]) -> int:
        return max((_common(ids, fed) for fed in self.fed.get(conversation, [])), default=0)

    async def list(self) -> Sequence[ConversationCache]:
        return self.figures


@dataclass
class Script:
    """What the fake does. answers: one a turn, `</think>` and other control tokens written out; an exception
    ends the answer before it (or after it, if `fails_after` tokens are given). title: what every title task
    is answered with.
    """

    answers: list[str | Exception] = field(default_factory=list)
    fails_after: int | None = None
    stop_reason: str = "stop"
    milliseconds: Callable[[int], float] = lambda step: 10.0 + step % 5
    load_steps: int = 3
    load_error: Exception | None = None
    pace: float = 0.0
    title: str = ""


class FakeEngine:
    """One engine. `allow` tokens are given out without being held back (None: all of them)."""

    def __init__(self, tokenizer: Tokenizer, script: Script, log: Path = Path("engine.log")) -> None:
        self.tokenizer = tokenizer
        self.script = script
        self.log_path = log
        self.alive = False
        self.closed = False
        self.asked: list[list[int]] = []
        self.titles_asked: list[list[int]] = []
        self.sampling: list[SamplingParams] = []
        self.conversations: list[str] = []
        self.allow: int | None = None
        self.hang = False
        self.stalled: Hang | None = None
        self.caches = FakeCaches()
        self.dropped: list[str] = []
        self.max_context = 8192
        self.room: int | None = None
        self._more = asyncio.Event()
        self._stop = False
        self._running = False
        self._death: EngineDied | None = None
        self._fed: list[int] = []

    async def start(self) -> Hello:
        self.alive = True
        return Hello(version=PROTOCOL_VERSION, pid=1)

    async def load(self, request: Load | None = None) -> AsyncIterator[Loading | Ready]:
        request = request or Load()
        for step in range(self.script.load_steps):
            await asyncio.sleep(self.script.pace)
            yield Loading(
                stage="loading",
                bytes_done=7_000_000 * step,
                bytes_total=20_500_000,
                tensors_done=90 * step,
                tensors_total=283,
                seconds_left=2.0 - step,
            )
        if self.script.load_error is not None:
            raise self.script.load_error
        yield Ready(
            model=request.model,
            path="/models/demo",
            layers=len(LAYER_KINDS),
            layer_kinds=list(LAYER_KINDS),
            hidden_size=256,
            vocab_size=self.tokenizer.vocab_size,
            parameters=20_900_000,
            weight_bytes=20_450_000,
            device="cpu",
            dtype="float32",
            kv_dtype="fp8",
            max_context=request.max_context or self.max_context,
            has_tokenizer=True,
            load_seconds=1.5,
        )

    async def generate(
        self,
        ids: Sequence[int],
        sampling: SamplingParams,
        *,
        conversation: str = "default",
        boundaries: Sequence[int] = (),
        alternatives: int = 0,
    ) -> AsyncIterator[Prefill | Token | Finished]:
        if self.tokenizer.token_text(ids[-1]) == "<｜title｜>":
            self.titles_asked.append(list(ids))
            async for item in self._title(list(ids)):
                yield item
            return
        self.asked.append(list(ids))
        self.sampling.append(sampling)
        self.conversations.append(conversation)
        self._stop, self._running = False, True
        try:
            async for item in self._answer(list(ids), alternatives):
                yield item
        finally:
            self._running = False

    async def _answer(self, ids: list[int], alternatives: int) -> AsyncIterator[Prefill | Token | Finished]:
        script = self.script
        answer = script.answers.pop(0) if script.answers else "Yes."
        if isinstance(answer, Exception) and script.fails_after is None:
            raise answer
        reused = next(
            (i for i, (a, b) in enumerate(zip(ids, self._fed, strict=False)) if a != b), len(self._fed)
        )
        reused = min(reused, len(ids) - 1)
        for done in (reused + (len(ids) - reused) // 2, len(ids)):
            await asyncio.sleep(script.pace)
            yield Prefill(turn=1, done=done, total=len(ids), reused=reused)
        text = answer if isinstance(answer, str) else "half an answer"
        sampled = written_out(self.tokenizer, text)
        decoder = self.tokenizer.decoder()
        given, spent, reason = 0, 0.0, script.stop_reason
        for step, number in enumerate(sampled):
            await self._wait_for(given)
            if self._death is not None:
                raise self._death
            if script.fails_after is not None and given >= script.fails_after:
                raise answer if isinstance(answer, Exception) else EngineFailed("EngineError", "It broke.")
            if self._stop:
                reason = "stopped"
                break
            milliseconds = script.milliseconds(step)
            spent += milliseconds
            yield Token(
                turn=1,
                id=number,
                text=decoder.push(number),
                logprob=-0.1 - (step % 7) / 10,
                milliseconds=milliseconds,
                residual=[
                    round(2.0 ** (layer + 1) * (1.5 + math.sin(step / 3 + layer)), 3) for layer in range(8)
                ],
                alternatives=[
                    Alternative(other, self.tokenizer.token_text(other), -0.1 - (step % 7) / 10 - place)
                    for place, other in enumerate((number, *range(100, 99 + alternatives)))
                ][:alternatives],
            )
            given += 1
        self._fed = ids + sampled[:given]
        self.caches.fed.setdefault(self.conversations[-1], []).append(self._fed)
        yield Finished(
            turn=1,
            reason=reason,
            prefilled=len(ids) - reused,
            reused=reused,
            tokens=given,
            ttft_ms=148.0,
            prefill_ms=136.0,
            first_decode_ms=12.0,
            tokens_per_second=1000 * given / spent if spent else 0.0,
            stop_id=self.tokenizer.eos_id if reason == "stop" else None,
            tail=decoder.flush(),
            room=self.room,
        )

    async def _title(self, ids: list[int]) -> AsyncIterator[Prefill | Token | Finished]:
        sampled = self.tokenizer.encode_text(self.script.title)
        decoder = self.tokenizer.decoder()
        for number in sampled:
            await asyncio.sleep(0)
            yield Token(
                turn=1, id=number, text=decoder.push(number), logprob=-0.1, milliseconds=1.0, residual=[]
            )
        yield Finished(
            turn=1,
            reason="stop",
            prefilled=1,
            reused=len(ids) - 1,
            tokens=len(sampled),
            ttft_ms=1.0,
            prefill_ms=1.0,
            first_decode_ms=1.0,
            tokens_per_second=1000.0,
            stop_id=self.tokenizer.eos_id,
            tail=decoder.flush(),
        )

    async def _wait_for(self, given: int) -> None:
        await asyncio.sleep(self.script.pace)
        while self.hang or (self.allow is not None and given >= self.allow and not self._stop):
            if self._death is not None:
                return
            self._more.clear()
            await self._more.wait()

    def let(self, tokens: int | None) -> None:
        """Give out up to `tokens` tokens of a turn in all; None: all."""
        self.allow = tokens
        self._more.set()

    def die(self, cause: str = "it was killed by SIGKILL") -> None:
        """As if the process ended."""
        self._death = EngineDied(cause, self.log_path, ["last line of the log"])
        self.alive = False
        self._more.set()

    def stop(self) -> None:
        if self._running:
            self._stop = True
            self._more.set()

    def drop(self, conversation: str) -> None:
        self.dropped.append(conversation)

    async def ping(self, timeout: float = 5.0) -> float:
        if self._death is not None:
            raise self._death
        return 1.0

    async def close(self) -> None:
        self.closed = True
        self.alive = False


def _common(first: Sequence[int], second: Sequence[int]) -> int:
    pairs = zip(first, second, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def written_out(tokenizer: Tokenizer, text: str) -> list[int]:
    """The ids of a completion whose control tokens are written out in `text`."""
    ids: list[int] = []
    rest = text
    marks = {tokenizer.token_text(number): number for number in tokenizer.control_ids}
    while rest:
        found = [(rest.find(mark), mark) for mark in marks if mark in rest]
        at, mark = min(found, default=(len(rest), ""))
        ids += tokenizer.encode_text(rest[:at]) if at else []
        if mark:
            ids.append(marks[mark])
        rest = rest[at + len(mark) :]
    return ids
