"""The chat without its screen: one open conversation, one engine, one history. Events come out in order.

Everything here belongs to one asyncio loop. `events` is a queue the screen empties at its own pace; nothing
in this module knows a widget.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import TypeVar

import msgspec

from dsv4chat.app.engine_link import EngineLink, TextSide
from dsv4chat.app.events import (
    ChatEvent,
    ConversationShown,
    HistoryInMemory,
    ModeChanged,
    Notice,
    TurnAdded,
)
from dsv4chat.app.ports import Engine
from dsv4chat.app.prompts import read_again, title_of, to_conversation
from dsv4chat.app.turn_runner import TurnRunner
from dsv4chat.app.wording import plural
from dsv4chat.runtime.protocol import Load, SamplingParams
from dsv4chat.store import (
    BackgroundStore,
    ConversationRecord,
    ConversationSettings,
    ConversationSummary,
    GenerationRecord,
    MessageRecord,
    Repository,
    StoreError,
)
from dsv4chat.turns import Turn

EFFORTS: tuple[str | None, ...] = (None, "low", "high", "max")
T = TypeVar("T")
HANGS_AFTER = 10.0  # seconds from a stop to its effect


class ChatSession:
    """One chat. `clock` counts seconds. `settings` are those of new conversations."""

    def __init__(
        self,
        *,
        make_engine: Callable[[], Engine],
        read_text: Callable[[], TextSide],
        load: Load,
        store: BackgroundStore,
        settings: ConversationSettings | None = None,
        sampling: SamplingParams | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.events: deque[ChatEvent] = deque()
        self.link = EngineLink(make_engine, read_text, load, self.events.append)
        self.record: ConversationRecord | None = None
        self.path: list[MessageRecord] = []
        self.settings = settings or ConversationSettings()
        self.sampling = sampling or SamplingParams()
        self.store = store
        store.trouble = lambda sentence: self.events.append(HistoryInMemory(sentence))
        self._defaults = self.settings
        self._clock = clock
        self._runner: TurnRunner | None = None
        self._turn: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._fed: tuple[int, ...] = ()
        self._fed_conversation: int | None = None

    # -- state -----------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether an answer is being prepared or written."""
        return self._turn is not None and not self._turn.done()

    @property
    def can_send(self) -> bool:
        """Whether a message would be answered now."""
        return self.link.state == "ready" and not self.busy

    @property
    def title(self) -> str:
        """Of the open conversation; "" for a new one."""
        return self.record.title if self.record else ""

    # -- what a person does ----------------------------------------------------------------------------

    async def open_history(self) -> None:
        """Open the history and show the conversation used last."""
        notice = await self.store.open()
        if notice:
            event = Notice(notice, "warning") if self.store.persistent else HistoryInMemory(notice)
            self.events.append(event)
        latest = await self._ask(Repository.latest_conversation)
        if latest is not None:
            await self._show(latest)
        else:
            self.events.append(ConversationShown(None, ()))

    def start_engine(self) -> None:
        """Start, or start again, the engine's process and load the model."""
        self._starting = self._begin(self._restart(self._starting))

    def submit(self, text: str) -> bool:
        """Send a message; False (and nothing happens) if it cannot be answered now."""
        if not self.can_send or not text.strip():
            return False
        self._turn = self._begin(self._answer_to(text))
        return True

    def stop(self) -> bool:
        """End the answer that is being written, keeping what is there; False if there is none."""
        if not self.busy or self._runner is None:
            return False
        self._runner.stop()
        self._begin(self._watch_stop())
        return True

    def new_conversation(self) -> None:
        """Leave this conversation for an empty one; it enters the history with its first message."""
        self._begin(self._leave_for(None))

    def open_conversation(self, conversation: int) -> None:
        """Leave this conversation for another one."""
        self._begin(self._leave_for(conversation))

    def set_mode(self, thinking: bool, effort: str | None) -> None:
        """Thinking on or off, and its effort, from the next turn on."""
        before = self.settings
        after = replace(before, thinking=thinking, effort=effort)
        if after == before:
            return
        self.settings = after
        self._defaults = replace(self._defaults, thinking=thinking, effort=effort)
        self.events.append(ModeChanged(thinking, effort))
        self._begin(self._change_mode(before, after))

    async def summaries(self) -> list[ConversationSummary]:
        """The conversations of the history."""
        return await self._ask(Repository.summaries) or []

    async def look_after(self) -> None:
        """To be called about once a second: notices an engine that died while nothing was asked of it."""
        await self.link.look()

    async def close(self) -> None:
        """End the turn (its partial answer is kept), the engine and the history."""
        for task in [self._turn, *self._tasks]:
            if task is not None:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self.store.close)
        await self.link.close()

    # -- inside ----------------------------------------------------------------------------------------

    async def _answer_to(self, text: str) -> None:
        try:
            record = self.record or await self._create()
            parent = self.path[-1].id if self.path else None
            user = await self.store.run(lambda history: history.add_message(record.id, parent, "user", text))
            if record.title_by == "none":
                title = title_of(text)
                await self.store.run(lambda history: history.rename(record.id, title, "text"))
                self.record = replace(record, title=title, title_by="text")
            self.path.append(user)
            await self._answer(record.id, user)
        except StoreError as error:
            self.events.append(Notice(f"The message was not sent: {error}", "error"))

    async def _answer(self, conversation: int, user: MessageRecord) -> None:
        text, ready, engine = self.link.text, self.link.ready, self.link.engine
        if text is None or ready is None or engine is None:
            return
        settings = self.settings
        generation = GenerationRecord(
            model=ready.model,
            tokenizer=text.fingerprint,
            profile=text.profile.value,
            layers=ready.layers,
            sampling=_sampling_columns(self.sampling),
        )
        answer = await self.store.run(
            lambda history: history.begin_answer(
                conversation, user.id, generation, thinking=settings.thinking, effort=settings.effort
            )
        )
        self.events.append(TurnAdded(user, answer))
        runner = self._runner = TurnRunner(answer, generation, self.store, self.events.append, self._clock)
        prompt = partial(to_conversation, tuple(self.path), settings, text.fingerprint)
        try:
            outcome = await runner.run(
                lambda: Turn(
                    engine,
                    text.tokenizer,
                    text.profile,
                    prompt(),
                    conversation_id=str(conversation),
                    sampling=self.sampling,
                )
            )
        finally:
            self._runner = None
            self.path.append(runner.record)
        self._fed, self._fed_conversation = outcome.fed, conversation
        if outcome.death is not None:
            self.link.down(outcome.death)

    async def _create(self) -> ConversationRecord:
        settings = self.settings
        record = await self.store.run(lambda history: history.create_conversation(settings))
        self.record = record
        self.store.current = record.id
        return record

    async def _leave_for(self, conversation: int | None) -> None:
        await self._end_turn()
        if conversation is None:
            self.record, self.path, self.settings = None, [], self._defaults
            self.store.current = None
            self.events.append(ConversationShown(None, ()))
            self.events.append(ModeChanged(self.settings.thinking, self.settings.effort))
            return
        record = await self._ask(lambda history: history.conversation(conversation))
        if record is not None:
            await self._show(record)

    async def _show(self, record: ConversationRecord) -> None:
        path = await self._ask(lambda history: history.path(record.active_leaf))
        self.record, self.path, self.settings = record, list(path or ()), record.settings
        self.store.current = record.id
        self.events.append(ConversationShown(record, tuple(self.path)))
        self.events.append(ModeChanged(self.settings.thinking, self.settings.effort))

    async def _end_turn(self) -> None:
        if self.stop() and self._turn is not None:
            await asyncio.wait({self._turn}, timeout=HANGS_AFTER)

    async def _watch_stop(self) -> None:
        turn = self._turn
        if turn is None:
            return
        await asyncio.wait({turn}, timeout=HANGS_AFTER)
        if not turn.done():
            self.events.append(
                Notice(
                    f"The engine has not stopped for {HANGS_AFTER:.0f} s. Restart it to go on; the answer so "
                    "far is kept.",
                    "error",
                )
            )

    async def _restart(self, before: "asyncio.Task[None] | None") -> None:
        for task in (before, self._turn):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait({task})
        self._fed = ()
        await self.link.start()

    async def _change_mode(self, before: ConversationSettings, after: ConversationSettings) -> None:
        if self.record is not None:
            number = self.record.id
            await self._ask(lambda history: history.update_settings(number, after))
        text = self.link.text
        if text is None or not self.path or self.record is None or self._fed_conversation != self.record.id:
            return
        cost = await asyncio.to_thread(
            read_again,
            tuple(self.path),
            before,
            after,
            self._fed,
            text.tokenizer,
            text.fingerprint,
            text.profile,
        )
        if cost:
            self.events.append(
                Notice(
                    f"With this change the next turn reads {plural(cost, 'token')} of the conversation again."
                )
            )

    async def _ask(self, work: Callable[[Repository], T]) -> T | None:
        try:
            return await self.store.run(work)
        except StoreError as error:
            self.events.append(Notice(str(error), "error"))
            return None

    def _begin(self, work: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _sampling_columns(sampling: SamplingParams) -> dict[str, object]:
    """What differs from the neutral settings."""
    neutral = msgspec.to_builtins(SamplingParams())
    given = msgspec.to_builtins(sampling)
    return {name: value for name, value in given.items() if value != neutral[name]}
