"""A program in a real pseudo-terminal: what it writes, when, and keys for it."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence

_ESCAPES = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|P[^\x1b]*\x1b\\|[@-Z\\-_=>()].?)"
)


class Terminal:
    """Runs `command` with a terminal of its own; everything it wrote is in `output`."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        size: tuple[int, int] = (100, 30),
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.output = b""
        self.started = time.perf_counter()
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        # The size of the test run's own terminal must not be taken for that of this one.
        inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**inherited, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})},
            start_new_session=True,
            close_fds=True,
        )
        os.close(slave)

    @property
    def text(self) -> str:
        """The output without escape sequences: all that was ever drawn, in order."""
        return _ESCAPES.sub(b"", self.output).decode("utf-8", "replace")

    def read(self, seconds: float) -> bytes:
        """What comes within `seconds`, returning as soon as anything does; b"" for nothing or the end."""
        ready, _, _ = select.select([self._master], [], [], seconds)
        if not ready:
            return b""
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:  # the other end is closed
            return b""
        self.output += data
        return data

    def wait_for(self, *what: str, seconds: float = 60.0) -> float:
        """Until one of `what` has been drawn; returns seconds since the start. AssertionError if none is."""
        end = time.perf_counter() + seconds
        while not any(words in self.text for words in what):
            if time.perf_counter() > end or (self.process.poll() is not None and not self.read(0.05)):
                raise AssertionError(
                    f"{what!r} was not drawn within {seconds} s; the end is {self.text[-600:]!r}"
                )
            self.read(0.05)
        return time.perf_counter() - self.started

    def send(self, keys: str) -> None:
        """Type something."""
        os.write(self._master, keys.encode())

    def forget(self) -> None:
        """Forget what was drawn so far."""
        self.output = b""

    def wait(self, seconds: float = 20.0) -> int:
        """Until the program has ended; its exit code."""
        end = time.perf_counter() + seconds
        while self.process.poll() is None and time.perf_counter() < end:
            self.read(0.05)
        return self.process.wait(1.0)

    def hang_up(self) -> None:
        """The terminal goes away, as when its window is closed."""
        os.close(self._master)
        self._master = -1

    def close(self) -> None:
        """End the program whatever it does."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        if self._master >= 0:
            os.close(self._master)
