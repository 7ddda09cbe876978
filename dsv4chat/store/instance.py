"""Which running program is writing an answer: a name and a locked file that the system unlocks at its death.

An answer left in state "writing" is interrupted exactly when nobody holds its writer's lock; a process id
would do as well only until ids are used again.
"""

import fcntl
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import IO


class Instance:
    """This program's mark in `folder`; `alive` asks about others. Without a folder only this one is known."""

    def __init__(self, folder: Path | None) -> None:
        self.name = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._folder = folder
        self._file: IO[bytes] | None = None
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.fdopen(os.open(self._path(self.name), os.O_CREAT | os.O_RDWR, 0o600), "wb")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def alive(self, name: str) -> bool:
        """Whether the program that called itself `name` still runs. Removes the mark of a dead one."""
        if name == self.name:
            return True
        if self._folder is None:
            return False
        try:
            file = os.fdopen(os.open(self._path(name), os.O_RDWR), "wb")
        except FileNotFoundError:
            return False
        except OSError:
            return True  # unreadable: rather leave its answer alone
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
            with suppress(OSError):
                self._path(name).unlink()
            return False

    def close(self) -> None:
        """Remove the mark."""
        if self._file is not None:
            with suppress(OSError):
                self._path(self.name).unlink()
            self._file.close()
            self._file = None

    def _path(self, name: str) -> Path:
        if self._folder is None or "/" in name:
            raise ValueError(f"no mark for {name!r}")
        return self._folder / f"{name}.lock"
