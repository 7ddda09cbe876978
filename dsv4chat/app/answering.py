"""Answers at the end of the open conversation's path: asked for, written, continued, stopped."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dsv4chat.app.events import AnswerResumed, TurnAdded
from dsv4chat.app.prompts import to_conversation
from dsv4chat.app.turn_runner import TurnRunner
from dsv4chat.runtime.protocol import SamplingParams
from dsv4chat.sampling_defaults import named, override
from dsv4chat.store import ConversationSettings, GenerationRecord, MessageRecord
from dsv4chat.turns import Turn

if TYPE_CHECKING:
    from dsv4chat.app.session import ChatSession

ALTERNATIVES = 8  # of the most probable tokens, kept with each token for a look inside it
RESUMABLE = ("stopped", "interrupted", "length", "failed")


class Answering:
    """Writes one answer at a time."""

    def __init__(self, session: "ChatSession") -> None:
        self._session = session
        self._runner: TurnRunner | None = None

    @property
    def running(self) -> bool:
        """Whether the engine is answering; a turn that is only being prepared does not count."""
        return self._runner is not None

    def stop(self) -> bool:
        """End the answer after the current token; False if there is none."""
        if self._runner is None:
            return False
        self._runner.stop()
        return True

    async def answer(self, user: MessageRecord | None = None) -> MessageRecord | None:
        """A new answer under the end of the path; `user`: the new message there, if there is one.

        Returns the answer as it ended; None when there is no engine. Raises StoreError.
        """
        session = self._session
        text, ready = session.link.text, session.link.ready
        if text is None or ready is None or not session.path:
            return None
        parent, settings = session.path[-1], session.settings
        generation = GenerationRecord(
            model=ready.model,
            tokenizer=text.fingerprint,
            profile=text.profile.value,
            layers=ready.layers,
            sampling=named(self._sampling()),
        )
        record = await session.store.run(
            lambda history: history.begin_answer(
                parent.conversation, parent.id, generation, thinking=settings.thinking, effort=settings.effort
            )
        )
        ids = [*(message.id for message in session.path), record.id]
        session.branches = await session.store.run(lambda history: history.branches(ids))
        session.events.append(TurnAdded(user, record, session.branches))
        return await self._run(record, generation, tuple(session.path), settings)

    async def resume(self) -> MessageRecord | None:
        """Go on with the unfinished answer at the end of the path, in the mode it was begun in.

        Its sampled ids stay as they are, those to come are added. Raises StoreError.
        """
        session = self._session
        before = session.path[-1]
        if before.generation is None:
            return None
        record = await session.store.run(lambda history: history.resume_answer(before.id))
        settings = replace(
            session.settings,
            thinking=session.settings.thinking if before.thinking is None else before.thinking,
            effort=before.effort,
        )
        session.events.append(AnswerResumed(record))
        path = tuple(session.path)
        session.path.pop()
        generation = replace(before.generation, sampling=named(self._sampling()))
        return await self._run(record, generation, path, settings, resumed=True)

    def can_resume(self, record: MessageRecord) -> bool:
        """Whether an answer ended before the model ended it, and this model can go on with it."""
        text, made = self._session.link.text, record.generation
        return (
            record.role == "assistant"
            and record.state in RESUMABLE
            and bool(record.ids)
            and not record.tool_calls
            and text is not None
            and made is not None
            and made.tokenizer == text.fingerprint
        )

    async def _run(
        self,
        record: MessageRecord,
        generation: GenerationRecord,
        path: Sequence[MessageRecord],
        settings: ConversationSettings,
        *,
        resumed: bool = False,
    ) -> MessageRecord | None:
        session = self._session
        text, engine = session.link.text, session.link.engine
        if text is None or engine is None:
            return None
        sampling = self._sampling()
        runner = self._runner = TurnRunner(
            record, generation, session.store, session.events.append, session.clock
        )
        prompt = partial(to_conversation, path, settings, text.fingerprint, resumed=resumed)
        try:
            death = await runner.run(
                lambda: Turn(
                    engine,
                    text.tokenizer,
                    text.profile,
                    prompt(),
                    conversation_id=str(record.conversation),
                    sampling=sampling,
                    alternatives=ALTERNATIVES,
                )
            )
        finally:
            self._runner = None
            session.path.append(runner.record)
            session.warm.turn_ended(record.conversation)
        if death is not None:
            session.link.down(death)
        return runner.record

    def _sampling(self) -> SamplingParams:
        """The program's, with what this conversation sets differently."""
        return override(self._session.sampling, self._session.settings.sampling)
