"""The demo model and its tools in a real terminal: approval, a large paste, search, coming back."""

import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from dsv4chat.assets import demo_path
from tests.support.terminal import Terminal

pytestmark = pytest.mark.skipif(
    not (demo_path() / "config.json").exists(), reason="this checkout has no demo model"
)
TOKYO = ZoneInfo("Asia/Tokyo")
COMMAND = [sys.executable, "-m", "dsv4chat"]


def messages(home: Path) -> list[tuple[str, str]]:
    """(role, content) of all messages in the history."""
    path = home / "data" / "history.db"
    if not path.exists():
        return []
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT role, content FROM message ORDER BY id").fetchall()


def times(home: Path) -> list[datetime]:
    """What the clock has said of Tokyo so far."""
    said = [text for role, text in messages(home) if role == "tool" and text.endswith(" Asia/Tokyo")]
    return [datetime.strptime(text, "%Y-%m-%d %H:%M:%S %A Asia/Tokyo").replace(tzinfo=TOKYO) for text in said]


def until(terminal: Terminal, predicate: Callable[[], object], what: str) -> None:
    """Until something holds, while the program's output is taken from it."""
    end = time.monotonic() + 60
    while not predicate():
        assert time.monotonic() < end, f"{what}; the end is {terminal.text[-600:]!r}"
        terminal.read(0.05)


def test_tools_search_paste_and_coming_back(tmp_path: Path) -> None:
    env = {
        "DSV4CHAT_HOME": str(tmp_path),
        "OMP_NUM_THREADS": "1",
        "DSV4CHAT_SAMPLING__TEMPERATURE": "0",
        "TZ": "Europe/Paris",
    }
    terminal = Terminal(COMMAND, env=env, size=(100, 40))
    try:
        terminal.wait_for("prompt profile")
        terminal.send("\x1bOR")  # F3
        terminal.wait_for("● tools")
        terminal.send("What is 17 * 24?\r")
        terminal.wait_for("Always run this tool")
        assert messages(tmp_path)[-1][0] == "assistant"
        terminal.send("\r")
        until(terminal, lambda: ("tool", "408") in messages(tmp_path), "the calculator has run")
        until(terminal, lambda: "408" in messages(tmp_path)[-1][1], "the answer says 408")
        terminal.wait_for("↳ calculator")  # the question is off the screen, which may be behind the history

        terminal.forget()
        before = datetime.now(TOKYO).replace(microsecond=0)
        terminal.send("What time is it in Tokyo?\r")
        terminal.wait_for("Always run this tool")
        terminal.send("\x1b[B\r")  # the second answer: always
        until(terminal, lambda: times(tmp_path), "the clock has run")
        moment = times(tmp_path)[0]
        assert before <= moment <= datetime.now(TOKYO)
        until(terminal, lambda: f"{moment:%H:%M}" in messages(tmp_path)[-1][1], "the answer says the time")
        terminal.send("What time is it in Tokyo?\r")
        until(terminal, lambda: len(times(tmp_path)) == 2, "it runs unasked")

        terminal.forget()
        pasted = "".join(f"line {number:07}\r" for number in range(80_000))
        terminal.send(f"\x1b[200~{pasted}\x1b[201~")
        terminal.wait_for("[pasted text 1: 1,040,000 characters, 80,001 lines]")
        terminal.send("\x03")  # clears the input
        terminal.send("\x06")  # Ctrl+F
        terminal.wait_for("Search")
        terminal.send("capital of nowhere")
        terminal.wait_for("Nothing found.")
        terminal.forget()
        terminal.send("\x15")  # Ctrl+U
        terminal.wait_for("a phrase")
        terminal.send("Asia/Tok")
        terminal.wait_for("messages, newest first")
        terminal.forget()
        terminal.send("\r")
        terminal.wait_for("↳ clock")
        terminal.send("\x11")
        assert terminal.wait() == 0
    finally:
        terminal.close()
    again = Terminal(COMMAND, env=env, size=(100, 40))
    try:
        again.wait_for("● tools")
        again.wait_for("↳ clock")
        again.send("\x11")
        assert again.wait() == 0
    finally:
        again.close()
