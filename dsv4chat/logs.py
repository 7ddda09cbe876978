"""The engine's log files: one a process, so that two instances never rotate each other's, old ones removed.

The child's standard output and error go there. While it runs, the child itself moves a log that has grown too
large aside (`<name>.log.1`); see runtime/child.py.
"""

import contextlib
import os
import time
from pathlib import Path

from dsv4chat.paths import log_folder

KEPT = 10


def new_engine_log(folder: Path | None = None) -> tuple[Path, int]:
    """A new log file for one engine process, and its descriptor opened for appending."""
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


def log_tail(path: Path, lines: int = 20, limit: int = 16_384) -> list[str]:
    """The last lines of a log, [] if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - limit))
            return file.read().decode("utf-8", "replace").splitlines()[-lines:]
    except OSError:
        return []


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
