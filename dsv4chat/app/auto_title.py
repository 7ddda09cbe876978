"""A conversation's title by the model, asked for once, when a turn has ended and nothing else is going on."""

import asyncio
from typing import TYPE_CHECKING

from dsv4chat.app.prompts import to_conversation
from dsv4chat.engine_process import EngineDied
from dsv4chat.titles import make_title

if TYPE_CHECKING:
    from dsv4chat.app.session import ChatSession


class AutoTitle:
    """Replaces a title made of the first words; never one given by the person."""

    def __init__(self, session: "ChatSession") -> None:
        self._session = session
        self._asked: set[int] = set()
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Ask for a title if this conversation is to get one now."""
        session, record = self._session, self._session.record
        last = session.path[-1] if session.path else None
        if (
            record is None
            or last is None
            or record.title_by not in ("none", "text")
            or record.id in self._asked
            or session.link.state != "ready"
            or (last.role, last.state) != ("assistant", "complete")
            or last.tool_calls
        ):
            return
        self._asked.add(record.id)
        self._task = session.begin(self._ask(record.id))

    async def leave(self) -> None:
        """The engine is wanted for something else: give up what is being asked."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task})

    async def _ask(self, conversation: int) -> None:
        session = self._session
        engine, text = session.link.engine, session.link.text
        if engine is None or text is None:
            return
        asked = to_conversation(tuple(session.path), session.settings, text.fingerprint)
        try:
            title = await make_title(
                engine, text.tokenizer, text.profile, asked, conversation_id=str(conversation)
            )
        except EngineDied as death:
            session.link.down(death)
            return
        if title:
            await session.give_title(conversation, title, "model")
