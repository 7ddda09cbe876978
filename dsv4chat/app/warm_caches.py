"""A conversation stays warm when the engine ends: saved when nothing is going on, brought back when opened.

The engine keeps the caches; this decides when. A turn makes its conversation's cache worth saving; it is
written once nothing has been asked for `IDLE_SECONDS`, and when the app is left. The engine writes only what
is new, so that saving often costs little.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from dsv4chat.app.events import CachesMeasured, Notice
from dsv4chat.engine_process import EngineDied, EngineFailed

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
        self._forgotten: set[str] = set()
        self._quiet_since = 0.0
        self._working: asyncio.Task[None] | None = None
        self._measured = True
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
        if self._unsaved and session.clock() - self._quiet_since >= IDLE_SECONDS:
            self._working = session.begin(self._save())
        elif not self._measured:
            self._working = session.begin(self.measure())

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

    def forget(self, conversation: int) -> None:
        """A conversation was deleted: what it said must not stay in a file, also if no engine runs now."""
        self._unsaved.discard(str(conversation))
        self._forgotten.add(str(conversation))
        self._drop()

    async def leave(self) -> None:
        """Save what is not saved yet, because the app is being left."""
        engine = self._engine()
        if engine is None or engine.stalled is not None:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._save(), LEAVE_SECONDS)

    def _engine(self) -> "Engine | None":
        """The engine, if it is ready and has a folder to save to."""
        link = self._session.link
        return link.engine if link.state == "ready" and link.saves else None

    def _drop(self) -> None:
        engine = self._engine()
        while engine is not None and self._forgotten:
            conversation = self._forgotten.pop()
            with suppress(EngineFailed, EngineDied):
                engine.drop(conversation)

    async def _save(self) -> None:
        while self._unsaved:
            engine = self._engine()
            if engine is None:
                return
            conversation = self._unsaved.pop()
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

    def _tell(self, sentence: str) -> None:
        """Once is enough: a full disk would say it after every turn."""
        if not self._told:
            self._told = True
            self._session.events.append(Notice(sentence, "warning"))
