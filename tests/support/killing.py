"""The program in a terminal while its processes are killed, and what of it can be seen from outside."""

import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from dsv4chat.store import MessageRecord, open_history
from tests.support.random_models import random_model
from tests.support.saved_models import save
from tests.support.small_tokenizer import CONTROL, VOCAB_SIZE, write_tokenizer
from tests.support.terminal import Terminal

PATIENCE = 90.0  # seconds
_COUNT = re.compile(rb"Thinking \xc2\xb7 [^\xc2\x1b]{1,16} \xc2\xb7 ([\d,]+) tokens?")


def save_endless(folder: Path) -> Path:
    """A small random model that, taken at its most probable, never ends its turn or its thinking."""
    model = random_model("flash", vocab_size=VOCAB_SIZE + 3)
    with torch.no_grad():
        model.lm_head.weight[:3] = 0  # the logit of each control token is 0, and another one is above that
        model.lm_head.weight[VOCAB_SIZE - len(CONTROL) :] = 0
    save(model, folder)
    write_tokenizer(folder)
    return folder


class Program:
    """The app over a model, with a home and a temporary folder of its own; `more` environment variables."""

    def __init__(self, root: Path, model: Path, **more: str) -> None:
        self.home = root / "home"
        self.temporary = root / "tmp"
        self.temporary.mkdir(exist_ok=True)
        self._environment = {
            "DSV4CHAT_HOME": str(self.home),
            "DSV4CHAT_SAMPLING__TEMPERATURE": "0",
            "TMPDIR": str(self.temporary),
            "OMP_NUM_THREADS": "1",
            **more,
        }
        self._model = model
        self.seen: list[tuple[float, int]] = []

    def open(self) -> None:
        """Start it and wait until it can answer."""
        command = [sys.executable, "-m", "dsv4chat", "--model", str(self._model)]
        self.terminal = Terminal(command, env=self._environment)
        self.terminal.wait_for("prompt profile", "· cpu", seconds=PATIENCE)

    def until(self, predicate: Callable[[], object], what: str) -> None:
        """Until something holds, while the program's output is taken from it."""
        end = time.monotonic() + PATIENCE
        while not predicate():
            shown = self.terminal.text[-600:]
            assert time.monotonic() < end, f"{what} did not come to pass; the end is {shown!r}"
            self.look(0.15)

    def look(self, seconds: float) -> None:
        """Watch the screen for a while, noting when how many tokens of an answer were to be seen."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            before = len(self.terminal.output)
            self.terminal.read(min(left, 0.02))
            counts = _COUNT.findall(_plain(self.terminal.output[max(0, before - 200) :]))
            if counts:
                self.seen.append((time.monotonic(), int(counts[-1].replace(b",", b""))))

    def ask(self, question: str) -> None:
        """Send a message like no other before and wait until an answer to it is being shown."""
        self.terminal.forget()
        self.seen.clear()
        self.terminal.send(f"{question}\r")
        self.until(lambda: self._last_question() == question, f"{question!r} in the history")
        self.until(lambda: self.seen, f"a first token of the answer to {question!r}")

    def answered(self, question: str) -> MessageRecord:
        """Send a message like no other before and wait until the answer to it is complete."""
        self.terminal.send(f"{question}\r")
        self.until(
            lambda: (
                self._last_question() == question
                and (path := self.messages())[-1].state not in ("writing", "interrupted")
                and path[-1].generation.prefilled is not None
            ),
            f"an answer to {question!r}",
        )
        return self.messages()[-1]

    def _last_question(self) -> str:
        """The last message of a person that has an answer, be it one that has just begun."""
        path = self.messages()
        return path[-2].content if len(path) > 1 else ""

    def saved(self) -> list[Path]:
        """The saved caches of conversations."""
        return sorted(self.home.glob("cache/conversations/**/*.safetensors"))

    def most_seen(self, until: float) -> int:
        """How many tokens of the answer were on the screen at a time."""
        return max((count for when, count in self.seen if when <= until), default=0)

    def messages(self) -> list[MessageRecord]:
        """The open path of the last conversation, read by a second program."""
        if not (self.home / "data" / "history.db").exists():
            return []
        history = open_history(self.home / "data").repository
        try:
            latest = history.latest_conversation()
            return list(history.path(latest.active_leaf)) if latest is not None else []
        finally:
            history.close()

    def child(self) -> int:
        """The process id of the engine."""
        pid = self.terminal.process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def processes(self) -> list[int]:
        """Every process that was started for this program and is still there."""
        mark = f"DSV4CHAT_HOME={self.home}".encode()
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit() and folder.name != str(os.getpid()):
                try:
                    if mark in (folder / "environ").read_bytes().split(b"\0"):
                        found.append(int(folder.name))
                except OSError:
                    continue
        return [pid for pid in found if alive(pid)]

    def gone_after(self, within: float = PATIENCE) -> float:
        """Seconds until no process of the program is left; fails if that takes longer than `within`."""
        start = time.monotonic()
        while self.processes():
            assert time.monotonic() < start + within, f"processes {self.processes()} stayed"
            time.sleep(0.02)
        return time.monotonic() - start

    def litter(self) -> list[str]:
        """What is left in the temporary folder, and sockets and pipes anywhere in the home."""
        left = [str(path) for path in self.temporary.rglob("*")]
        return left + [str(path) for path in self.home.rglob("*") if path.is_socket() or path.is_fifo()]

    def kill(self) -> float:
        """kill -9 of the app; when."""
        os.kill(self.terminal.process.pid, signal.SIGKILL)
        when = time.monotonic()
        self.terminal.wait()
        return when

    def quit(self) -> int:
        """Leave it by its key; the exit code."""
        self.terminal.send("\x11")
        return self.terminal.wait()


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def _plain(output: bytes) -> bytes:
    return re.sub(rb"\x1b\[[0-?]*[ -/]*[@-~]", b"", output)
