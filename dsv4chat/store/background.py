"""The history for an asyncio program: all SQL in one thread of its own, in the order it was asked for.

When the disk fails while the program runs (full, gone, damaged), the conversation in use moves into memory
and work goes on there. Damage that is found while none is in use is put right at once, by opening the file
anew. In both cases `trouble` is called with the sentence to show.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from dsv4chat.store.errors import (
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreIndexDamaged,
    StoreUnwritable,
)
from dsv4chat.store.opening import open_history, open_in_memory, suspect
from dsv4chat.store.repository import Repository
from dsv4chat.store.rescue import copy_conversation

T = TypeVar("T")
_ATTEMPTS = 6  # each waits for `opening.BUSY_SECONDS`


class BackgroundStore:
    """Runs functions of a `Repository` in order, off the caller's thread.

    folder: where the history lives; None keeps it in memory. current: the number of the conversation that
    must survive a failing disk. trouble: called in the store's thread; may be set later.
    """

    def __init__(self, folder: Path | None, trouble: Callable[[str], None] = lambda sentence: None) -> None:
        self.current: int | None = None
        self.persistent = folder is not None
        self._folder = folder
        self.trouble = trouble
        self._repository: Repository | None = None
        self._closed = self._opened_anew = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="history")
        self._lock = threading.Lock()

    async def open(self) -> str | None:
        """Open the history; returns the sentence to show if it is not the usual one."""
        return await asyncio.wrap_future(self._thread.submit(self._open))

    async def run(self, work: Callable[[Repository], T]) -> T:
        """The result of `work`, after everything asked for before. Raises StoreError."""
        return await asyncio.wrap_future(self.submit(work))

    def submit(self, work: Callable[[Repository], T]) -> "Future[T]":
        """Ask for `work` without waiting for it."""
        with self._lock:
            if self._closed:
                raise StoreError("The history is closed.")
            return self._thread.submit(self._run, work)

    def close(self) -> None:
        """Wait until everything asked for is written, then close the file. Safe to call twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._thread.submit(self._close).result()
        self._thread.shutdown()

    def _open(self) -> str | None:
        if self._folder is None:
            self._repository = open_in_memory()
            return None
        opened = open_history(self._folder)
        self._repository = opened.repository
        self.persistent = opened.persistent
        return opened.notice

    def _close(self) -> None:
        if self._repository is not None:
            self._repository.close()
            self._repository = None

    def _run(self, work: Callable[[Repository], T]) -> T:
        if self._repository is None:
            raise StoreError("The history is not open.")
        try:
            return _patiently(work, self._repository)
        except (StoreUnwritable, StoreDamaged, StoreBusy) as error:
            if not self.persistent:
                raise
            if isinstance(error, StoreDamaged) and self._folder is not None:
                suspect(self._folder)
                if self.current is None and not self._opened_anew:
                    self._open_anew(self._repository)
                    return self._run(work)
            self._move_to_memory(str(error))
            return work(self._repository)

    def _open_anew(self, broken: Repository) -> None:
        self._opened_anew = True
        broken.close()
        notice = self._open()
        if notice:
            self.trouble(notice)

    def _move_to_memory(self, reason: str) -> None:
        broken, memory = self._repository, open_in_memory()
        if broken is not None and self.current is not None:
            copy_conversation(broken, memory, self.current)
        self._repository, self.persistent = memory, False
        self.trouble(f"{reason} This conversation goes on in memory and is lost when you quit.")


def _patiently(work: Callable[[Repository], T], repository: Repository) -> T:
    """Another program that imports or brings an old history forward may take its time; an index is remade."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return work(repository)
        except StoreBusy:
            continue
        except StoreIndexDamaged:
            repository.rebuild_index()
    return work(repository)
