"""The child's standard output and error, kept to a bounded size whatever native code writes to them.

A log that cannot be written (a full disk) loses lines; the engine runs on without them.
"""

import contextlib
import io
import os
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

LOG_BYTES = 4 * 2**20
CHECK_SECONDS = 0.25


def note(text: str) -> None:
    """One line in the log."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


class _LosingFile(io.FileIO):
    """A file that takes everything and loses what cannot be written."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def never_in_the_way() -> None:
    """From here on nothing fails because standard output or error cannot be written."""
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        file = _LosingFile(descriptor, "w", closefd=False)
        setattr(sys, name, io.TextIOWrapper(file, "utf-8", "backslashreplace", line_buffering=True))


def keep_bounded(path: str | None) -> None:
    """Watch the log from a thread: one that has grown too large is moved to PATH.1 and begun again.

    path: where standard error is written to; a log without a name (None) is emptied instead.
    """
    threading.Thread(target=_watch, args=(path,), name="log", daemon=True).start()


def _watch(path: str | None) -> None:
    while True:
        time.sleep(CHECK_SECONDS)
        with contextlib.suppress(OSError):
            if os.fstat(2).st_size > LOG_BYTES:
                _begin_again(path)


def _begin_again(path: str | None) -> None:
    try:
        if path is None:
            raise FileNotFoundError
        os.replace(path, f"{path}.1")
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        os.ftruncate(2, 0)
        return
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
