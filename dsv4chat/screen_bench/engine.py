"""An engine that gives out prepared tokens at a fixed rate, catching up when the program held it up."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path

from dsv4chat.encoding import Tokenizer
from dsv4chat.engine_process_heartbeat import Hang
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

LAYERS = 43


class NoCaches:
    """Nothing is kept of any conversation."""

    async def save(self, conversation: str) -> Saved:
        return Saved(number=0, files=0, bytes=0, seconds=0.0)

    async def resume(self, conversation: str) -> Resumed:
        return Resumed(number=0, tokens=0, bytes=0, seconds=0.0)

    async def measure(self, conversation: str, ids: Sequence[int]) -> int:
        return 0

    async def list(self) -> list[ConversationCache]:
        return []


class PacedEngine:
    """Every turn is answered with `ids`, `rate` of them a second. started, due: monotonic seconds at which
    the first token of the last turn was given and its last one was due; processor: seconds of it in between.
    """

    def __init__(self, tokenizer: Tokenizer, ids: Sequence[int], rate: float) -> None:
        self.log_path = Path("engine.log")
        self.alive = False
        self.stalled: Hang | None = None
        self.caches = NoCaches()
        self.started = self.due = self.processor = 0.0
        self._tokenizer = tokenizer
        self._ids = list(ids)
        self._rate = rate
        self._stop = False

    async def start(self) -> Hello:
        self.alive = True
        return Hello(version=PROTOCOL_VERSION, pid=0)

    async def load(self, request: Load | None = None) -> AsyncIterator[Loading | Ready]:
        yield Ready(
            model="paced",
            path="",
            layers=LAYERS,
            layer_kinds=["csa"] * LAYERS,
            hidden_size=0,
            vocab_size=self._tokenizer.vocab_size,
            parameters=0,
            weight_bytes=0,
            device="none",
            dtype="none",
            kv_dtype="none",
            max_context=1 << 20,
            has_tokenizer=True,
            load_seconds=0.0,
        )

    async def generate(
        self,
        ids: Sequence[int],
        sampling: SamplingParams,
        *,
        conversation: str = "default",
        boundaries: Sequence[int] = (),
        alternatives: int = 0,
    ) -> AsyncGenerator[Prefill | Token | Finished, None]:
        self._stop = False
        title = self._tokenizer.token_text(ids[-1]) == "<｜title｜>"
        answer = self._tokenizer.encode_text("Title") if title else self._ids
        decoder = self._tokenizer.decoder()
        yield Prefill(turn=1, done=len(ids), total=len(ids), reused=0)
        begun = time.monotonic()
        if not title:
            self.started, self.due = begun, begun + (len(answer) - 1) / self._rate
            self.processor = -time.process_time()
        for step, number in enumerate(answer):
            wait = begun + step / self._rate - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            if self._stop:
                break
            text = decoder.push(number)
            yield Token(
                turn=1,
                id=number,
                text=text,
                logprob=-(step % 9) / 4,
                milliseconds=1000 / self._rate,
                residual=[1.0 + (step * layer) % 97 for layer in range(LAYERS)],
                alternatives=[Alternative(number, text, -0.1)] * alternatives,
            )
        if not title:
            self.processor += time.process_time()
        yield Finished(
            turn=1,
            reason="stopped" if self._stop else "stop",
            prefilled=len(ids),
            reused=0,
            tokens=len(answer),
            ttft_ms=1.0,
            prefill_ms=0.5,
            first_decode_ms=0.5,
            tokens_per_second=self._rate,
            stop_id=self._tokenizer.eos_id,
            tail=decoder.flush(),
        )

    def stop(self) -> None:
        self._stop = True

    def drop(self, conversation: str) -> None:
        """There is nothing to forget."""

    async def ping(self, timeout: float = 5.0) -> float:
        return 0.0

    async def close(self) -> None:
        self.alive = False
