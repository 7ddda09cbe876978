"""The engine's log files: one a process, so that two instances never rotate each other's, old ones removed.

The child's standard output and error go there. While it runs, the child itself moves a log that has grown too
large aside (`<name>.log.1`); see runtime/child_log.py. Where no log can be kept there is a file without a
name, which is gone with the process whatever ends it.
"""

import contextlib
import fcntl
import os
import tempfile
import time
from pathlib import Path

from dsv4chat.paths import log_folder

KEPT = 10
_DESCRIPTORS = Path("/dev/fd")


class EngineLog:
    """One log, opened for appending. `path` can be read as long as the log is not closed.

    named: whether it is a file that stays; if not, it exists only as long as it is open somewhere.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """A new log in `folder` (default: the platform's place), or one without a name. Never fails."""
        try:
            self.path, self.descriptor = _new_file(folder)
            self.named = True
        except OSError:
            self.descriptor = _unnamed_file()
            self.path = _DESCRIPTORS / str(self.descriptor)
            self.named = False
        self._open = True

    def started(self) -> None:
        """The child has it now: a log with a name need not be kept open here."""
        if self.named:
            self.close()

    def close(self) -> None:
        """Let go of it; safe to call twice."""
        if self._open:
            self._open = False
            os.close(self.descriptor)


def log_tail(path: Path, lines: int = 20, limit: int = 16_384) -> list[str]:
    """The last lines of a log, [] if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - limit))
            return file.read().decode("utf-8", "replace").splitlines()[-lines:]
    except OSError:
        return []


def has_name(path: Path) -> bool:
    """Whether a log's path is one to be told to a person."""
    return path.parent != _DESCRIPTORS


def _new_file(folder: Path | None) -> tuple[Path, int]:
    folder = folder or log_folder()
    folder.mkdir(parents=True, exist_ok=True)
    _remove_old(folder)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1000):
        path = folder / f"engine-{stamp}-{os.getpid()}-{number}.log"
        try:
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        except FileExistsError:
            continue
    raise OSError(f"no free name for a log file in {folder}")


def _unnamed_file() -> int:
    try:
        with tempfile.TemporaryFile(buffering=0) as file:
            descriptor = os.dup(file.fileno())
    except OSError:
        return os.open(os.devnull, os.O_RDWR)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_APPEND)
    return descriptor


def _remove_old(folder: Path) -> None:
    logs = sorted(folder.glob("engine-*.log"), key=_modified, reverse=True)
    for path in logs[KEPT - 1 :]:
        for old in (path, path.with_name(path.name + ".1")):
            with contextlib.suppress(OSError):
                old.unlink()


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
