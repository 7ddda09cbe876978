"""What goes to the terminal, also when that is gone.

Textual writes from a thread of its own, which ends with the first write that fails; from then on the app
waits for it forever, with its engine. A window that is closed in the middle of an answer must end both.
"""

import os
import signal
from typing import IO, Any


class LastingOutput:
    """`file`, but a write that fails is dropped; the first one tells the app as a closed terminal does."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._gone = False

    def write(self, text: str) -> int:
        """Write, if there still is a terminal."""
        if not self._gone:
            try:
                return self._file.write(text)
            except (OSError, ValueError):
                self._hang_up()
        return len(text)

    def flush(self) -> None:
        """Flush, if there still is a terminal."""
        if not self._gone:
            try:
                self._file.flush()
            except (OSError, ValueError):
                self._hang_up()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def _hang_up(self) -> None:
        self._gone = True
        os.kill(os.getpid(), signal.SIGHUP)
