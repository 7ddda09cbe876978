"""One answer from first to last: the turn's events to the screen, its text and figures to the history.

The partial answer is written about once a second without waiting for the disk; whatever ends the turn (the
model, the person, the engine's failure, the end of the program) writes all there is and says how it ended.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import replace

from dsv4chat.app.context_room import FORGET, context_full
from dsv4chat.app.events import AnswerEnded, ChatEvent, Notice
from dsv4chat.encoding import EncodingError, Message
from dsv4chat.engine_process import EngineDied, EngineFailed
from dsv4chat.store import BackgroundStore, GenerationRecord, MessageRecord, Repository, TokenFigures
from dsv4chat.turns import Turn, TurnFinished, TurnStarted, TurnToken

SAVE_SECONDS = 0.75  # so that, the writing included, no more than a second of an answer is ever lost
_STATES = {"stop": "complete", "length": "length", "stopped": "stopped"}


class TurnRunner:
    """Runs one turn for the answer `record`, which is already in the history and kept up to date here.

    A record with ids is an answer that is continued: what is generated now comes after them.
    """

    def __init__(
        self,
        record: MessageRecord,
        generation: GenerationRecord,
        store: BackgroundStore,
        post: Callable[[ChatEvent], None],
        clock: Callable[[], float],
    ) -> None:
        self.record = self._before = record
        self._generation = self._generation_before = generation
        self._store = store
        self._post = post
        self._clock = clock
        self._turn: Turn | None = None
        self._figures = TokenFigures()
        self._saved = 0
        self._stop_asked = False
        self._cut_off: str | None = None

    def stop(self) -> None:
        """End the answer after the current token, also if the prompt is still being prepared."""
        self._stop_asked = True
        if self._turn is not None:
            self._turn.stop()

    async def run(self, make_turn: Callable[[], Turn]) -> EngineDied | None:
        """Run the turn that `make_turn` prepares (in a thread); why the engine is gone, if it is.

        Raises CancelledError only.
        """
        state, error, death = "failed", None, None
        try:
            self._turn = await asyncio.to_thread(make_turn)
            state = await self._follow(self._turn)
        except asyncio.CancelledError:
            self._finish("stopped" if self._stop_asked else "interrupted", None)
            raise
        except EngineDied as died:
            # How it died is said where it can be started again, not here as well.
            error, death = "The engine ended before the answer did.", died
        except (EngineFailed, EncodingError) as failure:
            error = str(failure)
            if isinstance(failure, EngineFailed) and failure.kind == "ContextOverflowError":
                error += f" {FORGET}"
        self._finish(state, error or self._cut_off)
        return death

    async def _follow(self, turn: Turn) -> str:
        state, last_save = "failed", self._clock()
        async with aclosing(turn.events()) as events:
            async for event in events:
                if isinstance(event, TurnStarted):
                    self._generation = replace(self._generation, prompt_tokens=event.prompt_tokens)
                elif isinstance(event, TurnToken):
                    self._add(event)
                    now = self._clock()
                    if now - last_save >= SAVE_SECONDS:
                        last_save = now
                        self._save()
                elif isinstance(event, TurnFinished):
                    self._take_figures(event)
                    state = _STATES.get(event.reason, "complete")
                self._post(event)
                if self._stop_asked and isinstance(event, TurnStarted):
                    return "stopped"  # the engine has not been asked for anything yet
        return state

    def _add(self, event: TurnToken) -> None:
        self._figures.add(
            event.id, event.kind, event.milliseconds, event.logprob, event.residual, event.alternatives
        )

    def _take_figures(self, event: TurnFinished) -> None:
        figures = event.figures
        if event.reason == "length" and figures.room == 0:
            self._cut_off = context_full(figures.prompt_tokens + figures.tokens)
        for sentence in figures.notices:
            self._post(Notice(sentence, "warning"))
        self._generation = replace(
            self._generation,
            prompt_tokens=figures.prompt_tokens,
            reused=figures.reused,
            prefilled=figures.prefilled,
            tokens=figures.tokens,
            ttft_ms=figures.ttft_ms,
            prefill_ms=figures.prefill_ms,
            first_decode_ms=figures.first_decode_ms,
            tokens_per_second=figures.tokens_per_second,
        )

    def _new(self) -> tuple[int, TokenFigures]:
        start, self._saved = self._saved, len(self._figures)
        return len(self._before.ids) + start, self._figures.since(start)

    def _message(self) -> Message:
        before = self._before
        return (
            self._turn.message
            if self._turn
            else Message(
                "assistant", before.content, reasoning=before.reasoning, tool_calls=before.tool_calls
            )
        )

    def _save(self) -> None:
        message = self._message()
        start, new = self._new()
        self._write(
            lambda history: history.save_progress(
                self.record.id, message.content, message.reasoning, start, new, message.tool_calls
            )
        )

    def _write(self, work: Callable[[Repository], None]) -> None:
        """Hand work to the history. A failing disk is told there; what fails after that is told here."""
        self._store.submit(work).add_done_callback(self._written)

    def _written(self, writing: "Future[None]") -> None:
        error = writing.exception()
        if error is not None:
            self._post(Notice(f"A part of this answer is not in the history: {error}", "warning"))

    def _finish(self, state: str, error: str | None) -> None:
        """Write the whole answer without waiting for the disk, and post `AnswerEnded`."""
        message = self._message()
        thought = [
            milliseconds
            for milliseconds, kind in zip(self._figures.milliseconds, self._figures.kinds, strict=True)
            if kind == "reasoning"
        ]
        before = self._generation_before if self._before.ids else GenerationRecord("", "", "")
        generation = replace(
            self._generation,
            tokens=len(self._before.ids) + len(self._figures),
            reasoning_tokens=(before.reasoning_tokens or 0) + len(thought),
            reasoning_ms=(before.reasoning_ms or 0.0) + sum(thought),
        )
        start, new = self._new()
        self._write(
            lambda history: history.finish_answer(
                self.record.id,
                state,
                message.content,
                message.reasoning,
                start,
                new,
                generation,
                tool_calls=message.tool_calls,
                error=error,
            )
        )
        self.record = replace(
            self.record,
            state=state,
            error=error,
            content=message.content,
            reasoning=message.reasoning,
            tool_calls=message.tool_calls,
            ids=(*self._before.ids, *self._figures.ids),
            generation=generation,
        )
        self._post(AnswerEnded(self.record, self._turn.rest if self._turn else ()))
