"""Runs a program in a pseudo-terminal, types into it while it writes, and measures when things are drawn.

Input lag: from a key to its echo on the terminal. Every key is another letter that occurs nowhere else, so
that what is redrawn cannot be mistaken for an echo. Pace: when the last word was drawn against when its token
was due, in parts of the time the answer takes.
"""

import json
import os
import pty
import select
import signal
import struct
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from dsv4chat.screen_bench.chat import Job, command
from dsv4chat.screen_bench.texts import END

_LETTERS = "".join(
    chr(code)
    for first, last in ((0x100, 0x17F), (0x3B1, 0x3C9), (0x400, 0x45F), (0x1401, 0x166C))
    for code in range(first, last + 1)
)
_GAP = 0.03  # seconds between an echo and the next key
_PATIENCE = 60.0


@dataclass(frozen=True)
class Figures:
    """One run. Seconds; late: part of the answer's time; processor: of both, in seconds a second of it."""

    program: str
    kind: str
    history: int
    tokens: int
    rate: float
    seconds: float
    late: float
    lag_p50: float
    lag_p99: float
    lag_max: float
    keys: int
    opened: float
    processor: float


def measure(program: str, job_kind: str, *, tokens: int, rate: float, history: int = 0) -> Figures:
    """Run one program ("chat" or "plain") once. Raises BenchmarkError if it does not do what it should."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        job = Job(str(result), job_kind, tokens, rate, history)
        terminal = _Terminal(command(program, job), folder)
        try:
            terminal.wait_for("Message", "F8".lower())
            if program == "chat":
                terminal.wait_for("paced")
                if history:
                    terminal.wait_for(f"Answer {history - 1 - history % 2}", f"Question {history - 1}")
                time.sleep(1.0)
                terminal.send("go\r")
            else:
                terminal.send("\x1b[19~")
            drawn, lags = _type_until_the_end(terminal, _PATIENCE + 6 * tokens / rate)
            terminal.read(0.5)
            terminal.send("\x11")
            terminal.wait()
            times = json.loads(result.read_text())
        finally:
            terminal.close()
    length = times["due"] - times["started"]
    lags.sort()
    return Figures(
        program=program,
        kind=job_kind,
        history=history,
        tokens=tokens,
        rate=rate,
        seconds=drawn - times["started"],
        late=max(0.0, drawn - times["due"]) / length,
        lag_p50=lags[len(lags) // 2],
        lag_p99=lags[min(len(lags) - 1, int(0.99 * len(lags)))],
        lag_max=lags[-1],
        keys=len(lags),
        opened=times["opened"],
        processor=times["processor"] / max(length, drawn - times["started"]),
    )


class BenchmarkError(Exception):
    """A program of the benchmark did not do what it should; the sentence says what."""


def _type_until_the_end(terminal: "_Terminal", patience: float) -> tuple[float, list[float]]:
    lags: list[float] = []
    end = time.monotonic() + patience
    letters = iter(_LETTERS)
    while time.monotonic() < end:
        if terminal.end_seen is not None:
            return terminal.end_seen, lags
        letter = next(letters, None)
        if letter is None:
            terminal.read(_GAP)
            continue
        terminal.forget()
        sent = time.monotonic()
        terminal.send(letter)
        echo = terminal.seen_at(letter, sent + 30)
        if echo is None:
            raise BenchmarkError("A key was not echoed within 30 seconds.")
        lags.append(echo - sent)
        terminal.read(_GAP)
    raise BenchmarkError("The end of the answer was not drawn.")


class _Terminal:
    """A program with a terminal of 120x40 of its own."""

    def __init__(self, command: list[str], folder: str) -> None:
        import fcntl
        import termios

        self.end_seen: float | None = None
        self._recent = b""
        self._tail = b""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self._process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**kept, "TERM": "xterm-256color", "COLORTERM": "truecolor", "DSV4CHAT_HOME": folder},
            start_new_session=True,
            # Its controlling terminal: it is hung up when this process ends, however that comes about.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def send(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def forget(self) -> None:
        self._recent = b""

    def read(self, seconds: float) -> None:
        """Take what comes for so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._take(left)

    def seen_at(self, text: str, end: float) -> float | None:
        """When `text` came, since the last `forget`."""
        wanted = text.encode()
        while (left := end - time.monotonic()) > 0:
            self._take(min(left, 0.5))
            if wanted in self._recent:
                return time.monotonic()
            if self._process.poll() is not None:
                raise BenchmarkError("The program of the benchmark ended too early.")
        return None

    def wait_for(self, *texts: str) -> None:
        """Until one of `texts` has been drawn."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            if any(text.encode() in self._recent for text in texts):
                return
            self._take(0.5)
            if self._process.poll() is not None:
                break
        raise BenchmarkError(f"{texts[0]!r} was not drawn: {self._recent[-500:]!r}")

    def wait(self) -> None:
        end = time.monotonic() + _PATIENCE
        while self._process.poll() is None and time.monotonic() < end:
            self._take(0.1)

    def close(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._master)

    def _take(self, seconds: float) -> None:
        ready, _, _ = select.select([self._master], [], [], seconds)
        if not ready:
            return
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:  # the program has ended
            return
        self._recent += data
        if self.end_seen is None and END.encode() in self._tail + data:
            self.end_seen = time.monotonic()
        self._tail = data[-len(END) :]
