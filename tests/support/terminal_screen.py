"""A program in a pseudo-terminal and what its screen shows now, kept by a terminal emulator."""

import fcntl
import os
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence

import pyte

from tests.support.terminal import Terminal


class TerminalScreen(Terminal):
    """`Terminal` with an emulated screen: `rows` is what a person sees."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        size: tuple[int, int] = (100, 30),
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        super().__init__(command, size=size, env=env)

    @property
    def rows(self) -> list[str]:
        """The lines of the screen, without spaces at their ends."""
        return [line.rstrip() for line in self._screen.display]

    def read(self, seconds: float) -> bytes:
        data = super().read(seconds)
        if data:
            # The emulator does not know the sequences that switch the keyboard's protocol and prints them.
            self._stream.feed(data.replace(b"\x1b[>1u", b"").replace(b"\x1b[<u", b""))
        return data

    def until(self, holds: Callable[[str], bool], what: str = "", seconds: float = 60.0) -> str:
        """Until `holds` of the whole screen; returns it. AssertionError if it never does."""
        end = time.perf_counter() + seconds
        while True:
            shown = "\n".join(self.rows)
            if holds(shown):
                return shown
            if time.perf_counter() > end or self.process.poll() is not None:
                raise AssertionError(f"{what or 'what was waited for'} is not on the screen:\n{shown}")
            self.read(0.05)

    def shows(self, *words: str, seconds: float = 60.0) -> str:
        """Until all of `words` are on the screen at once."""
        return self.until(lambda shown: all(word in shown for word in words), f"{words!r}", seconds)

    def settle(self, seconds: float) -> None:
        """Take what comes for so long."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self.read(left)

    def resize(self, columns: int, lines: int) -> None:
        """Change the size of the window."""
        self._screen.resize(lines, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        os.killpg(self.process.pid, signal.SIGWINCH)
