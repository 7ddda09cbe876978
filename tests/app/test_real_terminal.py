"""The program in a real pseudo-terminal, with the real engine and a small random model."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dsv4chat.assets import demo_path
from tests.support.engines import save_random
from tests.support.terminal import Terminal

FIRST_PAINT = 0.5  # seconds
_TIMED = """
import sys, time
from dsv4chat.app import garbage, run
garbage.put_off()  # as `run` does, before anything large is imported
from dsv4chat.app.screens import chat_screen
real = chat_screen.ChatScreen._compositor_refresh
def refresh(self):
    real(self)
    if self.app._running and not hasattr(self, "_first"):
        self._first = True
        print(time.process_time(), file=open(sys.argv[1], "w"))
chat_screen.ChatScreen._compositor_refresh = refresh
run(model=sys.argv[2])
"""
_MODULES = """
import json, sys
from dsv4chat.app import run
code = run(model=sys.argv[2])
print(json.dumps(sorted(sys.modules)), file=open(sys.argv[1], "w"))
sys.exit(code)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_random(tmp_path_factory.mktemp("model"), "flash", text=True)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[dict[str, str]]:
    return {"DSV4CHAT_HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1"}


def opened(command: list[str], home: dict[str, str], size: tuple[int, int] = (100, 30)) -> Terminal:
    return Terminal([sys.executable, *command], env=home, size=size)


def messages(home: dict[str, str]) -> list[tuple[str, str, str, str | None]]:
    """(role, content, state, reasoning) of all messages in the history."""
    path = Path(home["DSV4CHAT_HOME"]) / "data" / "history.db"
    if not path.exists():
        return []
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "SELECT role, content, state, reasoning FROM message ORDER BY id"
        ).fetchall()


def ask_and_stop(terminal: Terminal, home: dict[str, str], question: str) -> int:
    """Ask until an answer could be stopped (a random model may end one at once); how often it was asked."""
    for attempt in range(1, 6):
        asked = len(messages(home)) + 2
        terminal.forget()
        terminal.send(f"{question}\r")
        until(terminal, lambda count=asked: len(messages(home)) == count)
        until(terminal, lambda: "Thinking ·" in terminal.text or messages(home)[-1][2] != "writing")
        terminal.send("\x1b")
        until(terminal, lambda: messages(home)[-1][2] != "writing")
        if messages(home)[-1][2] == "stopped":
            return attempt
    raise AssertionError("five answers ended by themselves at once")


def until(terminal: Terminal, predicate: Callable[[], bool]) -> None:
    """Until something holds, while the program's output is taken from it."""
    end = time.monotonic() + 60
    while not predicate():
        assert time.monotonic() < end
        terminal.read(0.05)


def child_of(terminal: Terminal) -> int:
    """The process id of the engine."""
    listing = Path(f"/proc/{terminal.process.pid}/task/{terminal.process.pid}/children").read_text()
    return int(listing.split()[0])


def test_the_first_paint_comes_within_half_a_second(tmp_path: Path, home: dict[str, str]) -> None:
    """Processor time, best of three, as other tests run beside this one; the time on the clock is printed.

    On a machine that is slow or busy beyond that: a bounded multiple of what importing Textual alone takes.
    As where it is installed, byte code may be kept; without it our part alone is compiled anew each time.
    """
    home["PYTHONDONTWRITEBYTECODE"] = ""
    spent, walls, bare = [], [], []
    for attempt in range(3):
        result = tmp_path / f"time-{attempt}"
        terminal = opened(["-c", _TIMED, str(result), str(tmp_path)], home)
        try:
            walls.append(terminal.wait_for("Message"))
            terminal.send("\x11")
            assert terminal.wait() == 0
        finally:
            terminal.close()
        spent.append(float(result.read_text()))
        import_alone = "import textual.app, time; print(time.process_time())"
        done = subprocess.run(
            [sys.executable, "-c", import_alone], capture_output=True, text=True, check=True
        )
        bare.append(float(done.stdout))
    print(
        f"first paint: {min(spent):.3f} s of processor time, {min(walls):.3f} s on the clock;"
        f" importing Textual alone: {min(bare):.3f} s"
    )
    assert min(spent) < max(FIRST_PAINT, 2.2 * min(bare))


def test_a_full_turn_loads_neither_torch_nor_numpy(tmp_path: Path, home: dict[str, str], model: Path) -> None:
    result = tmp_path / "modules"
    bounded = {**home, "DSV4CHAT_SAMPLING__MAX_TOKENS": "20"}
    terminal = opened(["-c", _MODULES, str(result), str(model)], bounded)
    try:
        terminal.wait_for("prompt profile")
        terminal.send("Hello\r")
        # Not by its last line on the screen: a notice may lie over that of a short answer.
        until(terminal, lambda: bool(messages(home)) and messages(home)[-1][0] == "assistant")
        until(terminal, lambda: messages(home)[-1][2] != "writing")
        terminal.send("\x11")
        assert terminal.wait() == 0
    finally:
        terminal.close()
    loaded = set(json.loads(result.read_text()))
    assert "dsv4chat.app.session" in loaded
    assert not loaded & {"torch", "numpy", "transformers", "safetensors"}


def test_chat_stop_restart_and_come_back(home: dict[str, str], model: Path) -> None:
    if not Path("/proc/self/task").exists():
        pytest.skip("finds the child through /proc")
    terminal = opened(["-m", "dsv4chat", "--model", str(model)], home)
    try:
        terminal.wait_for("prompt profile")
        asked = ask_and_stop(terminal, home, "First question")
        assert terminal.process.poll() is None
        child = child_of(terminal)
        terminal.forget()
        os.kill(child, signal.SIGKILL)
        terminal.wait_for("starts it again")
        assert "SIGKILL" in terminal.text
        terminal.send("\x1b[15~")  # F5
        terminal.wait_for("· cpu")
        asked += ask_and_stop(terminal, home, "Second question")
        terminal.send("\x11")
        assert terminal.wait() == 0
    finally:
        terminal.close()
    kept = messages(home)
    assert [role for role, *_ in kept] == ["user", "assistant"] * asked
    assert [state for role, _, state, _ in kept if role == "assistant"].count("stopped") == 2
    again = opened(["-m", "dsv4chat", "--model", str(model)], home)
    try:
        again.wait_for("Second question")
        again.send("\x11")
        assert again.wait() == 0
    finally:
        again.close()


def test_after_kill_9_in_mid_answer_all_is_there_and_the_engine_is_gone(
    home: dict[str, str], model: Path
) -> None:
    if not Path("/proc/self/task").exists():
        pytest.skip("finds the child through /proc")
    seeded = {**home, "DSV4CHAT_SAMPLING__SEED": "46"}  # an answer of 520 tokens
    terminal = opened(["-m", "dsv4chat", "--model", str(model)], seeded)
    try:
        terminal.wait_for("prompt profile")
        terminal.send("Remember this\r")
        terminal.wait_for("Thinking ·")
        until(terminal, lambda: any(reasoning for *_, reasoning in messages(home)))
        child = child_of(terminal)
        terminal.process.kill()
        terminal.wait()
    finally:
        terminal.close()
    end = time.monotonic() + 10
    while _alive(child) and time.monotonic() < end:
        time.sleep(0.1)
    assert not _alive(child)
    (question, answer) = messages(home)
    assert question[:3] == ("user", "Remember this", "complete")
    assert answer[2] == "writing"
    assert answer[3]
    again = opened(["-m", "dsv4chat", "--model", str(model)], home)
    try:
        again.wait_for("interrupted")
        assert "Remember this" in again.text
        again.send("\x11")
        assert again.wait() == 0
    finally:
        again.close()
    assert [state for _, _, state, _ in messages(home)] == ["complete", "interrupted"]


def test_a_terminal_that_goes_away_ends_the_program_and_its_engine(home: dict[str, str], model: Path) -> None:
    terminal = opened(["-m", "dsv4chat", "--model", str(model)], home)
    try:
        terminal.wait_for("prompt profile")
        terminal.process.send_signal(signal.SIGHUP)
        assert terminal.wait() == 0
    finally:
        terminal.close()


def test_without_a_terminal_it_says_what_to_do(home: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dsv4chat"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, **home},
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "dsv4chat ask" in done.stderr


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.skipif(not (demo_path() / "config.json").exists(), reason="this checkout has no demo model")
def test_the_demo_model_thinks_and_answers_with_paris(home: dict[str, str]) -> None:
    greedy = {**home, "DSV4CHAT_SAMPLING__TEMPERATURE": "0"}
    terminal = opened(["-m", "dsv4chat"], greedy, (120, 40))
    try:
        terminal.wait_for("prompt profile")
        terminal.send("What is the capital of France?\r")
        terminal.wait_for("Thought ·")
        terminal.wait_for("first after")
        assert "Paris" in terminal.text
        assert "|X| per layer" in terminal.text
        terminal.send("\x11")
        assert terminal.wait() == 0
    finally:
        terminal.close()
    question, answer = messages(home)
    assert question[1] == "What is the capital of France?"
    assert "Paris" in answer[1]
    assert answer[3]


def test_with_no_place_for_any_file_the_chat_works_and_says_so(tmp_path: Path, model: Path) -> None:
    (tmp_path / "file").write_text("in the way of every folder")
    # A random model may go on for thousands of tokens.
    bound = {"DSV4CHAT_SAMPLING__MAX_TOKENS": "20", "OMP_NUM_THREADS": "1"}
    home = {"DSV4CHAT_HOME": str(tmp_path / "file" / "home"), **bound}
    # So wide that no notice lies over the line below a short answer.
    terminal = opened(["-m", "dsv4chat", "--model", str(model)], home, (200, 30))
    try:
        terminal.wait_for("history not saved")
        terminal.wait_for("prompt profile")
        terminal.send("Hello\r")
        terminal.wait_for("first after")
        terminal.send("\x11")
        assert terminal.wait() == 0
    finally:
        terminal.close()
