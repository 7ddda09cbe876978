"""A conversation stays warm when the engine ends: saved when nothing is going on, brought back when opened.

The engine keeps the caches; this decides when. A turn makes its conversation's cache worth saving; it is
written once nothing has been asked for `IDLE_SECONDS`, and when the app is left. The engine writes only what
is new, so that saving often costs little. What is saved of a conversation that is gone is removed.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dsv4chat.app.events import CachesMeasured, Notice
from dsv4chat.engine_process import EngineDied, EngineFailed
from dsv4chat.saved_caches import remove_files, saved_conversations
from dsv4chat.store import Repository

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dsv4chat.app.ports import Engine
    from dsv4chat.app.session import ChatSession
    from dsv4chat.runtime.protocol_conversations import ConversationCache

IDLE_SECONDS = 2.0
LEAVE_SECONDS = 20.0  # the longest that leaving waits for what is not saved yet


class WarmCaches:
    """Belongs to a session. Nothing here raises: without a saved cache a turn only takes longer.

    latest: where the caches were when they were last measured, the last used one first.
    """

    def __init__(self, session: "ChatSession") -> None:
        self._session = session
        self.latest: tuple[ConversationCache, ...] = ()
        self._unsaved: set[str] = set()
        self._deleted: str | None = None
        self._forgotten: set[str] = set()
        self._quiet_since = 0.0
        self._working: asyncio.Task[None] | None = None
        self._measured = True
        self._cleaned = False
        self._told = False

    def turn_ended(self, conversation: int) -> None:
        """A turn changed a conversation's cache."""
        self._unsaved.add(str(conversation))
        self._measured = False
        self._quiet_since = self._session.clock()

    def look(self) -> None:
        """To be called about once a second: saves when it is time to."""
        session = self._session
        if session.busy or (self._working is not None and not self._working.done()):
            return
        if self._unsaved - {self._deleted} and session.clock() - self._quiet_since >= IDLE_SECONDS:
            self._working = session.begin(self._save())
        elif not self._measured:
            self._working = session.begin(self.measure())
        elif not self._cleaned and self._engine() is not None:
            self._cleaned = True
            self._working = session.begin(self._clean())

    async def opened(self) -> None:
        """Bring the open conversation's cache back, ahead of its next turn."""
        self._drop()
        engine, record = self._engine(), self._session.record
        if engine is None or record is None or not self._session.path:
            return
        try:
            back = await engine.caches.resume(str(record.id))
        except (EngineFailed, EngineDied):
            return  # its next turn, or the watch over the engine, will say what is wrong
        for sentence in back.notices:
            self._session.events.append(Notice(sentence, "warning"))
        await self.measure()

    async def measure(self) -> None:
        """Tell the screen where the caches are."""
        self._measured = True
        engine = self._session.link.engine
        if engine is None or self._session.link.state != "ready":
            return
        try:
            figures = await engine.caches.list()
        except (EngineFailed, EngineDied):
            return
        self.latest = tuple(figures)
        self._session.events.append(CachesMeasured(self.latest))

    def bytes_of_open(self, caches: "Sequence[ConversationCache]") -> int:
        """Bytes of the open conversation's cache, wherever they are; what is on disk as well counts once."""
        record = self._session.record
        for cache in caches:
            if record is not None and cache.conversation == str(record.id):
                return cache.live_bytes + cache.memory_bytes or cache.disk_bytes
        return 0

    def deleted(self, conversation: int) -> None:
        """A conversation was deleted: its cache is kept in case it is brought back at once.

        That ends when another one is deleted or the app is left; then what it said must not stay in a file.
        """
        self._forget_deleted()
        self._deleted = str(conversation)

    def restored(self) -> None:
        """What was deleted last, and is not back yet, was brought back."""
        self._deleted = None

    async def leave(self) -> None:
        """Save what is not saved yet, because the app is being left."""
        self._forget_deleted()
        engine = self._engine()
        if engine is None or engine.stalled is not None:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._save(), LEAVE_SECONDS)

    def _engine(self) -> "Engine | None":
        """The engine, if it is ready and has a folder to save to."""
        link = self._session.link
        return link.engine if link.state == "ready" and link.saves else None

    def _forget_deleted(self) -> None:
        if self._deleted is not None:
            self._unsaved.discard(self._deleted)
            self._forgotten.add(self._deleted)
            self._deleted = None
            self._drop()

    def _drop(self) -> None:
        engine = self._engine()
        while engine is not None and self._forgotten:
            conversation = self._forgotten.pop()
            with suppress(EngineFailed, EngineDied):
                engine.drop(conversation)

    async def _save(self) -> None:
        while waiting := self._unsaved - {self._deleted}:
            engine = self._engine()
            if engine is None:
                return
            conversation = waiting.pop()
            self._unsaved.discard(conversation)
            try:
                await engine.caches.save(conversation)
            except asyncio.CancelledError:
                self._unsaved.add(conversation)  # the app is being left, and asks again
                raise
            except EngineDied:
                return
            except EngineFailed as error:
                self._tell(f"The cache of a conversation could not be saved: {error}")
        await self.measure()

    async def _clean(self) -> None:
        """Remove the files of conversations that are gone: deleted without an engine, lost with a history."""
        session = self._session
        folder = session.link.saves
        if folder is None:
            return
        # The files first: a conversation that comes meanwhile is none of those then.
        saved = await asyncio.to_thread(saved_conversations, Path(folder))
        there = await session.ask(Repository.numbers)
        if there is not None and session.store.persistent:
            kept = {str(number) for number in there} | {self._deleted}
            gone = [path for number, paths in saved.items() if str(number) not in kept for path in paths]
            await asyncio.to_thread(remove_files, gone)

    def _tell(self, sentence: str) -> None:
        """Once is enough: a full disk would say it after every turn."""
        if not self._told:
            self._told = True
            self._session.events.append(Notice(sentence, "warning"))
