"""All warm conversations of an engine: the one in the live cache, those in memory, and those on disk.

What is not in the live cache may take `budget` bytes of memory. Above it, what was used longest ago is
written to the folder and its memory freed: first branches of the conversations used longest ago, then left
branches of the present one. It comes back by itself when a turn needs it. Without a folder it is forgotten,
and so is what cannot be written.
"""

import time
from collections import OrderedDict
from dataclasses import dataclass

from dsv4chat.runtime.branches import Branch
from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.cache_folder import CacheFolder
from dsv4chat.runtime.errors import SavedCacheError
from dsv4chat.runtime.live_cache import LiveCache
from dsv4chat.runtime.model import Model
from dsv4chat.runtime.saved_cache import SavedFile, attach
from dsv4chat.runtime.session import Session

MEMORY_BYTES = 2 * 2**30


@dataclass(frozen=True, slots=True)
class ConversationFigures:
    """Where a conversation's cache is. tokens: of the path in use; branches: stretches without a fork.

    live_bytes: in the live cache (on the model's device); memory_bytes: in host memory; disk_bytes: in files.
    """

    conversation: str
    tokens: int
    branches: int
    live_bytes: int
    memory_bytes: int
    disk_bytes: int


@dataclass(frozen=True, slots=True)
class SaveFigures:
    """What a save wrote; nothing when all was on disk already."""

    files: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Resumed:
    """What is ready after a resume. tokens: ids in the live cache; 0 if nothing could be used.

    notices: sentences about saved parts that could not be used.
    """

    tokens: int
    bytes: int
    seconds: float
    notices: list[str]


class Conversations:
    """Sessions by name, least recently used first. Not for several threads at once."""

    def __init__(
        self, model: Model, cache: KVCache, folder: CacheFolder | None = None, budget: int = MEMORY_BYTES
    ) -> None:
        self.live = LiveCache(cache)
        self.folder = folder
        self.budget = budget
        self._model = model
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def session(self, name: str) -> Session:
        """A conversation's session; made if need be, from its files if it has some."""
        session = self._sessions.get(name)
        if session is None:
            # Half of the budget for marks: without them the rows are of no use, and the other way round.
            session = Session(self._model, self.live, mark_bytes=self.budget // 2)
            if self.folder is not None:
                files, notices = self.folder.files(name)
                session.notices += notices + attach(session.root, files)
                _date(session, files)
            self._sessions[name] = session
        self._sessions.move_to_end(name)
        return session

    def settle(self) -> None:
        """Bring memory within the budget. To be called between turns; does nothing inside a step."""
        if self.live.stepping:
            return
        total = sum(session.nbytes for session in self._sessions.values())
        for name, session in list(self._sessions.items()):
            if total <= self.budget:
                break
            for branch in session.left_branches():
                if total <= self.budget:
                    break
                total -= self._free(name, session, branch)
            if not session.root.children and not session.is_live:
                del self._sessions[name]
        owner = self.live.owner
        if self.folder is not None and owner is not None:
            self.folder.touch(_files(owner.tip))

    def save(self, name: str) -> SaveFigures:
        """Write what is not on disk yet. Raises SavedCacheError; what was written by then is good."""
        if self.folder is None:
            raise SavedCacheError("Caches are not saved: the engine was given no folder, or no room in it.")
        started = time.perf_counter()
        written: list[SavedFile] = []
        session = self._sessions.get(name)
        if session is not None:
            session.keep_tip()
            waiting = list(session.root.children)
            while waiting:  # parents first
                branch = waiting.pop()
                if not _is_saved(branch):
                    try:
                        rows = session.rows_of(branch)
                    except SavedCacheError as error:  # its file has gone, and with it what it held
                        session.notice(error)
                        session.forget(branch)
                        continue
                    stored = self.folder.write(name, branch, rows)
                    branch.now_in(stored)
                    written.append(stored)
                waiting += branch.children
            self.folder.touch(_files(session.tip))
            if written:
                self.folder.prune()
        size = sum(file.nbytes for file in written)
        return SaveFigures(len(written), size, time.perf_counter() - started)

    def resume(self, name: str) -> Resumed:
        """Bring a conversation back to where it was last, as far as that can be read."""
        started = time.perf_counter()
        session = self.session(name)
        while not session.is_live and session.root.children:
            latest = session.tip
            if latest is session.root:
                ends = [branch for branch in session.root.walk() if not branch.children]
                latest = max(ends, key=lambda branch: (branch.used, branch.end))
            try:
                session.go_to_last_mark(latest)
            except SavedCacheError as error:  # what could not be read is forgotten: the next best
                session.notice(error)
        seconds = time.perf_counter() - started
        return Resumed(session.position, session.live_bytes, seconds, session.take_notices())

    def release(self, name: str) -> None:
        """Write a conversation to disk and free all of its memory; without a folder it is forgotten."""
        session = self._sessions.get(name)
        if session is not None:
            session.leave()
            for branch in session.left_branches():
                self._free(name, session, branch)

    def drop(self, name: str) -> None:
        """Forget a conversation, its files too."""
        session = self._sessions.pop(name, None)
        if session is not None:
            session.leave()
        if self.folder is not None:
            self.folder.remove(name)

    def figures(self) -> list[ConversationFigures]:
        """One entry a conversation that was used since the start, the last used one first."""
        return [_figures(name, session) for name, session in reversed(self._sessions.items())]

    def _free(self, name: str, session: Session, branch: Branch) -> int:
        """Free a left branch's memory, saving it first; returns the bytes freed."""
        size = branch.nbytes
        if self.folder is not None and not _is_saved(branch):
            try:
                self.save(name)
            except SavedCacheError as error:
                session.notice(error)
        if branch.stored is None:
            session.forget(branch)
            return size
        branch.rows = None
        for mark in branch.marks:
            mark.state = None
        return size


def _is_saved(branch: Branch) -> bool:
    return branch.stored is not None and branch.stored.exists()


def _files(branch: Branch) -> list[SavedFile]:
    return [part.stored for part in branch.path() if isinstance(part.stored, SavedFile)]


def _date(session: Session, files: list[SavedFile]) -> None:
    """Carry the order in which files were used over to the branches."""
    order = {file.name: number for number, file in enumerate(files)}
    for branch in session.root.walk():
        if branch.stored is not None:
            branch.used = order[branch.stored.name]
    session.uses = len(files)


def _figures(name: str, session: Session) -> ConversationFigures:
    branches = [branch for branch in session.root.walk() if branch is not session.root]
    files = {branch.stored.name: branch.stored for branch in branches if branch.stored is not None}
    return ConversationFigures(
        conversation=name,
        tokens=session.position,
        branches=len(branches),
        live_bytes=session.live_bytes,
        memory_bytes=session.nbytes,
        disk_bytes=sum(file.nbytes for file in files.values() if file.exists()),
    )
