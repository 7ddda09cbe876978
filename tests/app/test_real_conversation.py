"""Conversations in a real terminal: edit, branches, a look inside, continue; scrolling and sizes meanwhile.

With the real engine and the demo model or a random one; where only the screen matters, a paced engine.
"""

import json
import sqlite3
import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest

from dsv4chat.assets import demo_path
from dsv4chat.screen_bench.chat import Job, command
from dsv4chat.screen_bench.texts import END
from tests.support.engines import save_random
from tests.support.terminal_screen import TerminalScreen

STATE = "SELECT state FROM message WHERE role = 'assistant'"
needs_demo = pytest.mark.skipif(
    not (demo_path() / "config.json").exists(), reason="this checkout has no demo model"
)


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"DSV4CHAT_HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1"}


def rows(home: dict[str, str], query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(Path(home["DSV4CHAT_HOME"]) / "data" / "history.db")) as connection:
        return connection.execute(query).fetchall()


def opened(home: dict[str, str], *options: str, size: tuple[int, int] = (120, 40)) -> TerminalScreen:
    terminal = TerminalScreen([sys.executable, "-m", "dsv4chat", *options], env=home, size=size)
    terminal.shows("· cpu")
    return terminal


@needs_demo
def test_edit_branches_and_a_look_inside_with_the_demo_model(home: dict[str, str]) -> None:
    greedy = {**home, "DSV4CHAT_SAMPLING__TEMPERATURE": "0"}
    terminal = opened(greedy)
    try:
        terminal.send("What is the capital of France?\r")
        terminal.shows("Paris", "first after")
        terminal.send("\t")
        terminal.shows("Edit")
        terminal.send("\x1b[A")
        terminal.settle(0.3)
        terminal.send("e")
        terminal.shows("another version of your message")
        terminal.send("\x15What is the capital of Italy?\r")
        terminal.shows("Rome", "‹ 2/2 ›", "first after")
        terminal.until(lambda shown: "Paris" not in shown, "another branch")
        terminal.send("\t")
        terminal.shows("Edit")
        terminal.send("\x1b[A")
        terminal.settle(0.3)
        terminal.send("\x1b[D")
        terminal.shows("Paris", "‹ 1/2 ›")
        terminal.send("\x1b[B")
        terminal.settle(0.3)
        terminal.send("i")
        shown = terminal.shows("Next surprise", "at layer", " %")
        first = next(line for line in shown.split("\n") if " of " in line and "answer" in line)
        terminal.send("\x1b[C")
        terminal.until(lambda shown: first not in shown and "at layer" in shown, "the next token")
        terminal.send("\x1b")
        terminal.shows("|X| per layer")
        terminal.send("\x11")
        assert terminal.wait() == 0
    finally:
        terminal.close()
    assert rows(home, "SELECT count(*) FROM message WHERE parent_id IS NULL AND role = 'user'") == [(2,)]
    again = opened(greedy)
    try:
        again.shows("Paris", "‹ 1/2 ›")
        again.send("\x11")
        assert again.wait() == 0
    finally:
        again.close()


def test_a_stopped_answer_is_continued_by_the_real_engine(tmp_path: Path, home: dict[str, str]) -> None:
    model = save_random(tmp_path / "model", "flash", text=True)
    seeded = {**home, "DSV4CHAT_SAMPLING__SEED": "46"}  # an answer of 520 tokens
    terminal = opened(seeded, "--model", str(model))
    tokens = "SELECT ids FROM token_block ORDER BY start"

    def ids() -> bytes:
        return b"".join(bytes(blob) for (blob,) in rows(home, tokens))  # type: ignore[arg-type]

    try:
        terminal.send("Remember this\r")
        terminal.shows("Thinking ·")
        terminal.send("\x1b")
        terminal.shows("stopped ·")
        terminal.until(
            lambda _: rows(home, "SELECT state FROM message WHERE role = 'assistant'") == [("stopped",)]
        )
        before = ids()
        terminal.send("\t")
        terminal.shows("Continue")
        terminal.send("c")
        terminal.until(lambda _: len(ids()) > len(before), "more tokens")
        terminal.send("\x1b")
        terminal.until(lambda _: rows(home, STATE) != [("writing",)])
        terminal.send("\x11")
        assert terminal.wait() == 0
    finally:
        terminal.close()
    assert ids().startswith(before)
    assert rows(home, "SELECT count(*) FROM message") == [(2,)]


def conversation(terminal: TerminalScreen) -> list[str]:
    """The rows of the transcript, without its scrollbar and what stands beside and below it."""
    return [row[:74].rstrip() for row in terminal.rows[1:28]]


def test_scrolled_up_nothing_moves_while_text_comes_and_end_returns(tmp_path: Path) -> None:
    job = Job(str(tmp_path / "result.json"), "prose", 1500, 120.0)
    terminal = TerminalScreen(command("chat", job), env={"DSV4CHAT_HOME": str(tmp_path)}, size=(120, 40))
    try:
        terminal.shows("paced")
        terminal.send("go\r")
        terminal.until(lambda shown: "screen" in shown and "█  go" not in shown, "more than fits")
        terminal.send("\x1b[5~")
        terminal.shows("new token")
        terminal.settle(0.3)
        before = conversation(terminal)
        counted = terminal.until(lambda shown: "new token" in shown)
        terminal.settle(1.5)
        assert conversation(terminal) == before
        assert terminal.until(lambda shown: "new token" in shown) != counted
        terminal.send("\x1b[F")
        terminal.until(lambda shown: "new token" not in shown, "the end")
        terminal.shows(END)
        terminal.shows("first after")
        terminal.send("\x11")
        assert terminal.wait() == 0
    finally:
        terminal.close()


def test_the_window_changes_its_size_while_text_comes_and_nothing_is_lost(tmp_path: Path) -> None:
    job = Job(str(tmp_path / "result.json"), "list", 600, 100.0)
    terminal = TerminalScreen(command("chat", job), env={"DSV4CHAT_HOME": str(tmp_path)}, size=(120, 40))
    try:
        terminal.shows("paced")
        terminal.send("go\r")
        terminal.shows("item 3")
        for size in ((40, 15), (200, 60), (80, 24)):
            terminal.resize(*size)
            terminal.settle(0.3)
            terminal.until(lambda shown: "item" in shown and "Message" in shown)
            assert len(terminal.rows) == size[1]
        terminal.shows(END, "first after")
        terminal.resize(120, 40)
        terminal.shows(END, "first after", "|X| per layer")
        terminal.send("\x11")
        assert terminal.wait() == 0
    finally:
        terminal.close()
    assert json.loads(Path(asdict(job)["result"]).read_text())["started"] > 0
