"""The chat without its screen: one open conversation, one engine, one history. Events come out in order.

Everything here belongs to one asyncio loop. `events` is a queue the screen empties at its own pace; nothing
in this module knows a widget. Answers are written by `answers`, branches handled by `tree`, conversations
opened and left by `opened`.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TypeVar

from dsv4chat.app.answering import Answering
from dsv4chat.app.auto_title import AutoTitle
from dsv4chat.app.elsewhere import WrittenElsewhere
from dsv4chat.app.engine_link import EngineLink, TextSide
from dsv4chat.app.events import (
    ChatEvent,
    ModeChanged,
    Notice,
    TitleChanged,
    TurnStopped,
    TurnStopping,
)
from dsv4chat.app.mode_cost import cost_of_change
from dsv4chat.app.open_conversation import OpenConversation
from dsv4chat.app.ports import Engine
from dsv4chat.app.preferences import Preferences
from dsv4chat.app.tool_events import ToolsSwitched
from dsv4chat.app.tool_turns import ToolTurns
from dsv4chat.app.tree_actions import TreeActions
from dsv4chat.app.warm_caches import WarmCaches
from dsv4chat.runtime.protocol import Load, SamplingParams
from dsv4chat.sampling_defaults import override
from dsv4chat.store import (
    BackgroundStore,
    Branch,
    ConversationRecord,
    ConversationSettings,
    ConversationSummary,
    MessageRecord,
    Repository,
    StoreError,
)
from dsv4chat.titles import fallback_title

EFFORTS: tuple[str | None, ...] = (None, "low", "high", "max")
T = TypeVar("T")
HANGS_AFTER = 5.0  # seconds from a stop to its effect


class ChatSession:
    """One chat. `clock` counts seconds. `settings` are those of new conversations.

    path: the messages shown, first to last. branches: of those that have others beside them.
    """

    def __init__(
        self,
        *,
        make_engine: Callable[[], Engine],
        read_text: Callable[[], TextSide],
        load: Load,
        store: BackgroundStore,
        settings: ConversationSettings | None = None,
        preferences: Preferences | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.events: deque[ChatEvent] = deque()
        self.link = EngineLink(make_engine, read_text, load, self.events.append)
        self.record: ConversationRecord | None = None
        self.path: list[MessageRecord] = []
        self.branches: dict[int, Branch] = {}
        self.settings = settings or ConversationSettings()
        self.leaving: Callable[[], None] = lambda: None  # called when another conversation was asked for
        self.store = store
        store.trouble = lambda sentence: self.events.append(self.opened.of_history(sentence))
        self.clock = clock
        self.answers = Answering(self)
        self.tree = TreeActions(self)
        self.opened = OpenConversation(self)
        self.elsewhere = WrittenElsewhere(self)
        self.titles = AutoTitle(self)
        self.warm = WarmCaches(self)
        self.preferences = preferences or Preferences()
        self.tools = ToolTurns(self, self.preferences.toolbox, self.preferences.tool_limits)
        self._defaults = self.settings
        self._turn: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # -- state -----------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether an answer is being prepared or written."""
        return self._turn is not None and not self._turn.done()

    @property
    def can_send(self) -> bool:
        """Whether a message would be answered now."""
        ready = self.link.state == "ready" and not self.busy
        return ready and not self.opened.switching and not self.elsewhere.writing

    @property
    def defaults(self) -> ConversationSettings:
        """What new conversations begin with."""
        return self._defaults

    @property
    def title(self) -> str:
        """Of the open conversation; "" for a new one."""
        return self.record.title if self.record else ""

    @property
    def model_sampling(self) -> SamplingParams:
        """How the model wants to be sampled; neutral as long as none was loaded."""
        return self.link.text.sampling if self.link.text is not None else SamplingParams()

    @property
    def sampling(self) -> SamplingParams:
        """What holds where a conversation sets nothing: the settings, and below them the model's own."""
        return override(self.model_sampling, self.preferences.settings.sampling.given())

    # -- what a person does ----------------------------------------------------------------------------

    async def open_history(self) -> None:
        """Open the history and show the conversation that was left open."""
        await self.opened.open_history()

    def start_engine(self) -> None:
        """Start, or start again, the engine's process and load the model."""
        self._starting = self.begin(self._restart(self._starting))

    def submit(self, text: str) -> bool:
        """Send a message; False if it cannot be answered now. An engine that is gone is started again."""
        if self.link.state == "down":
            self.start_engine()
        if not self.can_send or not text.strip():
            return False
        return self.begin_turn(self._answer_to(text))

    def stop(self) -> bool:
        """End the answer that is being written, keeping what is there; False if there is none."""
        calling = self.tools.stop()
        answering = self.answers.stop()
        if not self.busy or not (calling or answering):
            return False
        self.events.append(TurnStopping())
        self.begin(self._watch_stop())
        return True

    def new_conversation(self) -> None:
        """Leave this conversation for an empty one; it enters the history with its first message."""
        if self.record is not None:
            self.leaving()
        self.opened.leave_for(None, None)

    def open_conversation(self, conversation: int, message: int | None = None) -> None:
        """Leave this conversation for another one, or for one of its messages on whatever branch."""
        if self.record is None or self.record.id != conversation:
            self.leaving()
        self.opened.leave_for(conversation, message)

    def set_mode(self, thinking: bool, effort: str | None) -> None:
        """Thinking on or off, and its effort, from the next turn on, here and in new conversations."""
        self._defaults = replace(self._defaults, thinking=thinking, effort=effort)
        self.set_settings(replace(self.settings, thinking=thinking, effort=effort))

    def set_tools(self, tools: list[dict[str, object]]) -> None:
        """What the model may call from the next turn on, here and in new conversations; [] for nothing."""
        self._defaults = replace(self._defaults, tools=tools)
        self.set_settings(replace(self.settings, tools=tools))

    def set_defaults(self, defaults: ConversationSettings) -> None:
        """What new conversations begin with; an empty one that is open begins anew with it."""
        self._defaults = defaults
        if self.record is None:
            self.set_settings(defaults)

    def set_settings(self, after: ConversationSettings) -> None:
        """System prompt, sampling, mode and tools of this conversation, from the next turn on."""
        before = self.settings
        if after == before:
            return
        self.settings = after
        if (after.thinking, after.effort) != (before.thinking, before.effort):
            self.events.append(ModeChanged(after.thinking, after.effort))
        if len(after.tools) != len(before.tools):
            self.events.append(ToolsSwitched(len(after.tools)))
        self.begin(self._settings_changed(before, after))

    def rename(self, title: str) -> None:
        """Give the open conversation a title; the model gives it no other from then on."""
        if self.record is not None and title.strip():
            self.begin(self.give_title(self.record.id, title.strip(), "person"))
        elif self.record is not None:
            self.events.append(Notice("A title needs a word; the conversation keeps its own.", "warning"))

    async def summaries(self, limit: int = 200, offset: int = 0) -> list[ConversationSummary]:
        """The conversations of the history after the first `offset`, the one used last first."""
        return await self.ask(lambda history: history.summaries(limit, offset)) or []

    async def look_after(self) -> None:
        """To be called about once a second: notices what happened while nothing was asked of the engine."""
        await self.link.look()
        self.warm.look()
        await self.elsewhere.look()

    async def close(self) -> None:
        """End the turn (its partial answer is kept), the engine and the history."""
        for task in [self._turn, *self._tasks]:
            if task is not None:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.opened.leave()
        await asyncio.to_thread(self.store.close)
        await self.warm.leave()
        await self.link.close()

    # -- for the parts of a session --------------------------------------------------------------------

    async def ask(self, work: Callable[[Repository], T]) -> T | None:
        """The result of `work`; None, and a notice, if the history cannot do it."""
        try:
            return await self.store.run(work)
        except StoreError as error:
            self.events.append(Notice(str(error), "error"))
            return None

    def begin(self, work: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        """Run `work` beside everything else; it ends with the session."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def begin_turn(self, work: Coroutine[None, None, None]) -> bool:
        """Run `work` as the turn: until it ends the session is busy. Always True."""
        self._turn = self.begin(self._run_turn(work))
        return True

    async def end_turn(self) -> None:
        """Stop the turn, if there is one, and wait for its end, but not for ever."""
        if self.stop() and self._turn is not None:
            await asyncio.wait({self._turn}, timeout=HANGS_AFTER)

    async def give_title(self, conversation: int, title: str, by: str) -> None:
        """Write a title; `by`: "text", "model" or "person"."""
        await self.ask(lambda history: history.rename(conversation, title, by))
        if self.record is not None and self.record.id == conversation:
            self.record = replace(self.record, title=title, title_by=by)
            self.events.append(TitleChanged(title))

    # -- inside ----------------------------------------------------------------------------------------

    async def _run_turn(self, work: Coroutine[None, None, None]) -> None:
        await self.titles.leave()
        await work
        self.titles.begin()

    async def _answer_to(self, text: str) -> None:
        try:
            record = self.record or await self.opened.create()
            parent = self.path[-1].id if self.path else None
            user = await self.store.run(lambda history: history.add_message(record.id, parent, "user", text))
            if record.title_by == "none":
                await self.give_title(record.id, fallback_title(text), "text")
            self.path.append(user)
            await self.tools.answer(user)
        except StoreError as error:
            self.events.append(Notice(f"The message was not sent: {error}", "error"))

    async def _watch_stop(self) -> None:
        turn = self._turn
        if turn is None:
            return
        await asyncio.wait({turn}, timeout=HANGS_AFTER)
        if not turn.done():
            self.link.hangs(f"The engine has not stopped for {HANGS_AFTER:.0f} s.")
            await asyncio.wait({turn})
            self.link.recovered()
        self.events.append(TurnStopped())

    async def _restart(self, before: "asyncio.Task[None] | None") -> None:
        for task in (before, self._turn):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait({task})
        await self.link.start()
        await self.warm.opened()

    async def _settings_changed(self, before: ConversationSettings, after: ConversationSettings) -> None:
        if self.record is not None:
            number = self.record.id
            await self.ask(lambda history: history.update_settings(number, after))
        sentence = await cost_of_change(self, before, after)
        if sentence:
            self.events.append(Notice(sentence))
