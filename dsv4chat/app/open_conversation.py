"""Which conversation is open: the one left open, a new one, another one; begun in the history when needed."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from dsv4chat.app.events import ConversationShown, HistoryInMemory, ModeChanged, Notice, PromptsRead
from dsv4chat.app.tool_events import ToolsSwitched
from dsv4chat.store import Branch, ConversationRecord, MessageRecord, Repository, StoreError

if TYPE_CHECKING:
    from dsv4chat.app.session import ChatSession

PROMPTS = 200  # of earlier runs, for the history of prompts


class OpenConversation:
    """Sets `record`, `path`, `branches` and `settings` of the session, and tells the screen of them."""

    def __init__(self, session: "ChatSession") -> None:
        self._session = session
        self._noted = False
        self._switch: asyncio.Task[None] | None = None

    async def open_history(self) -> None:
        """Open the history and show the conversation that was left open, which may be an empty one."""
        session = self._session
        notice = await session.store.open()
        if notice:
            session.events.append(self.of_history(notice))
        left = await session.ask(Repository.left_open)
        if left is not None:
            await self._show(left)
        else:
            session.events.append(ConversationShown(None, ()))
            self._tell_mode()
        prompts = await session.ask(lambda history: history.prompts(PROMPTS))
        session.events.append(PromptsRead(tuple(prompt.text for prompt in reversed(prompts or ()))))

    def of_history(self, sentence: str) -> Notice | HistoryInMemory:
        """What to tell of a history that is not the usual one."""
        return Notice(sentence, "warning") if self._session.store.persistent else HistoryInMemory(sentence)

    @property
    def switching(self) -> bool:
        """Whether another conversation was asked for and is not there yet: nothing is sent meanwhile."""
        return self._switch is not None and not self._switch.done()

    def leave_for(self, conversation: int | None, message: int | None) -> None:
        """End the turn and show another conversation, or for None an empty one.

        message: the one to look at, on whatever branch; None: the last one. What is asked for last is what
        is shown in the end.
        """
        self._switch = self._session.begin(self._leave_for(self._switch, conversation, message))

    async def _leave_for(
        self, before: "asyncio.Task[None] | None", conversation: int | None, message: int | None
    ) -> None:
        if before is not None:
            await asyncio.wait({before})
        session = self._session
        await session.end_turn()
        if conversation is None:
            session.record, session.path, session.branches = None, [], {}
            session.settings = session.defaults
            session.store.current = None
            self.note()
            session.events.append(ConversationShown(None, ()))
            self._tell_mode()
            return
        if message is not None:
            await session.ask(lambda history: history.switch(message))
        record = await session.ask(lambda history: history.conversation(conversation))
        if record is not None:
            await self._show(record, message)
        else:
            session.events.append(ConversationShown(session.record, tuple(session.path), session.branches))

    async def create(self) -> ConversationRecord:
        """Enter the empty conversation into the history. Raises StoreError."""
        session = self._session
        settings = session.settings
        record = await session.store.run(lambda history: history.create_conversation(settings))
        session.record = record
        session.store.current = record.id
        self.note()
        return record

    def note(self) -> None:
        """Have the history remember what is open, at once, as the program may end in any way."""
        record = self._session.record
        number = record.id if record else None
        self._noted = True

        def write(history: Repository) -> None:
            with suppress(StoreError):  # that a disk is full is found out when a message is to be kept
                history.note_open(number)

        with suppress(StoreError):  # the history is closed already
            self._session.store.submit(write)

    def leave(self) -> None:
        """The program is left: what is open here counts, whatever another program has opened since."""
        if self._noted:
            self.note()

    async def load_path(self, leaf: int | None) -> bool:
        """Make the messages down to `leaf` the path; False, and a notice, if they cannot be read."""
        session = self._session

        def read(history: Repository) -> tuple[list[MessageRecord], dict[int, Branch]]:
            path = history.path(leaf)
            return path, history.branches([record.id for record in path])

        found = await session.ask(read)
        session.path, session.branches = found or ([], {})
        return found is not None

    async def _show(self, record: ConversationRecord, seen: int | None = None) -> None:
        session = self._session
        await self.load_path(record.active_leaf)
        session.record, session.settings = record, record.settings
        session.store.current = record.id
        self.note()
        session.events.append(ConversationShown(record, tuple(session.path), session.branches, seen))
        self._tell_mode()
        session.begin(session.warm.opened())

    def _tell_mode(self) -> None:
        session = self._session
        session.events.append(ModeChanged(session.settings.thinking, session.settings.effort))
        session.events.append(ToolsSwitched(len(session.settings.tools)))
