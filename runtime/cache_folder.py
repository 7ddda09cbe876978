"""The folder of saved caches: one file a branch, grouped by model and conversation, kept below a size.

    FOLDER / fingerprint / conversation / branch.safetensors

Names of folders are derived, because a conversation may be called anything; the files' heads say what they
are. Every file has a new name and appears whole, so two programs can use the folder at once. A file's time is
when it was last used; the ones used longest ago go first when the folder grows too large.
"""

import os
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from dsv4chat.runtime.branches import Branch
from dsv4chat.runtime.cache import CacheRows
from dsv4chat.runtime.errors import SavedCacheError
from dsv4chat.runtime.protocol_cache import SUFFIX, checksum
from dsv4chat.runtime.saved_cache import TEMPORARY, SavedFile, write

DISK_BYTES = 8 * 2**30
STALE_SECONDS = 3600  # a temporary file this old belongs to a program that is gone


class CacheFolder:
    """The saved caches of one model. limit: the most bytes for all models together.

    ratios: the cache's, how many tokens a row stands for.
    """

    def __init__(
        self, root: Path, fingerprint: str, model: str, ratios: tuple[int, ...], limit: int = DISK_BYTES
    ) -> None:
        self.root = root
        self.limit = limit
        self._fingerprint = fingerprint
        self._model = model
        self._ratios = ratios

    def files(self, conversation: str) -> tuple[list[SavedFile], list[str]]:
        """A conversation's files, those used longest ago first, and sentences about unusable ones."""
        files, notices = [], []
        for path in _by_use(self._folder(conversation).glob(f"*{SUFFIX}")):
            try:
                file = SavedFile.open(path, self._fingerprint, self._ratios)
            except SavedCacheError as error:
                notices.append(str(error))
                continue
            if file.head.conversation == conversation:
                files.append(file)
            else:
                notices.append(f"The saved cache {path.name} is of another conversation; it is ignored.")
        return files, notices

    def write(self, conversation: str, branch: Branch, rows: CacheRows) -> SavedFile:
        """Save one branch, whose parent is saved already. Raises SavedCacheError."""
        return write(
            self._folder(conversation),
            branch,
            rows,
            conversation=conversation,
            fingerprint=self._fingerprint,
            model=self._model,
        )

    def remove(self, conversation: str) -> None:
        """Delete all of a conversation's files."""
        shutil.rmtree(self._folder(conversation), ignore_errors=True)

    def touch(self, files: Iterable[SavedFile]) -> None:
        """Note that a path was used: `files` from the start on, which stay longer than what follows them."""
        now = time.time_ns()
        for number, file in enumerate(files):
            file.touch(now - number)

    def prune(self) -> None:
        """Delete the files used longest ago until the folder is within its limit, and what crashes left."""
        sizes: list[tuple[Path, int]] = []
        for path in _by_use(self.root.glob(f"*/*/*{SUFFIX}")):
            with suppress(OSError):
                sizes.append((path, path.stat().st_size))
        excess = sum(size for _, size in sizes) - self.limit
        for path, size in sizes:
            if excess <= 0:
                break
            with suppress(OSError):
                path.unlink()
                excess -= size
        for path in self.root.glob(f"*/*/{TEMPORARY}*"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > STALE_SECONDS:
                    path.unlink()

    def _folder(self, conversation: str) -> Path:
        return self.root / self._fingerprint[:16] / checksum(conversation.encode("utf-8", "replace"))[:16]


def _by_use(paths: Iterable[Path]) -> list[Path]:
    """Paths in the order of their times; what has vanished meanwhile is left out."""
    timed = []
    for path in paths:
        with suppress(OSError):
            timed.append((os.stat(path).st_mtime_ns, path))
    return [path for _, path in sorted(timed)]
