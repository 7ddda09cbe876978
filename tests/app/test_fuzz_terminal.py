"""Nasty text in a real pseudo-terminal: no byte reaches it that harmless text would not cause as well."""

import json
import os
import random
import re
import sys
from pathlib import Path

import pytest

from tests.support.fuzz import nasty, nasty_bytes
from tests.support.terminal import Terminal

SIZE = (100, 150)
_SEQUENCE = re.compile(
    "\x1b(?:\\[(?P<csi>[0-?]*[ -/]*[@-~])"
    "|(?P<string>[\\]PX^_][^\x1b\x07]*(?:\x1b\\\\|\x07))"
    "|(?P<other>[^\\[]))"
)
_CONTROL = re.compile("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_PLAY = """
import random, sys
from dsv4chat.app.terminal_input import forgiving
from tests.app import test_fuzz
from tests.support import fuzz

class Theatre(test_fuzz.Stage):
    def get_driver_class(self):
        return forgiving(super().get_driver_class())

    def on_mount(self):
        self.run_worker(self.play(int(sys.argv[1]), int(sys.argv[2])))

    async def play(self, seed, rounds):
        rng = random.Random(seed)
        if sys.argv[3] == "harmless":
            test_fuzz.nasty = lambda rng: "A harmless line with **strong** words, `code` and a\\n\\n- list\\n"
            test_fuzz.nasty_bytes = lambda rng: b"harmless"
        for _ in range(rounds):
            cast = [actor(rng) for actor in test_fuzz.ACTORS]
            with self.batch_update():
                await self.column.mount(*(widget for widget, _ in cast))
                for _, act in cast:
                    await act()
            drawn = __import__("asyncio").Event()
            self.call_after_refresh(drawn.set)
            await drawn.wait()
            await self.column.remove_children()
        self.exit(return_code=7)

app = Theatre()
app.run()
sys.exit(app.return_code)
"""
_PASTE = """
import json, sys
from textual.app import App
from dsv4chat.app.terminal_input import forgiving
from dsv4chat.app.widgets.composer import Composer

class Desk(App):
    def get_driver_class(self):
        return forgiving(super().get_driver_class())

    def compose(self):
        yield Composer()

    def on_composer_submitted(self, event):
        with open(sys.argv[1], "a") as file:
            file.write(json.dumps(event.text) + "\\n")
        event.composer.clear()

Desk().run()
"""


def shapes(output: bytes) -> set[str]:
    """The kinds of escape sequences in what was written; AssertionError for any other control character."""
    text = output.decode("utf-8")
    found = set()
    for match in _SEQUENCE.finditer(text):
        if match["csi"] is not None:
            private = match["csi"][0] in "<=>?"
            found.add(match["csi"] if private else match["csi"][-1])
        else:
            found.add(match["string"] or match["other"])
    rest = _SEQUENCE.sub("", text)
    wrong = _CONTROL.search(rest)
    assert wrong is None, repr(rest[max(0, wrong.start() - 80) : wrong.end() + 80])
    return found


def played(seed: int, rounds: int, what: str) -> bytes:
    terminal = Terminal([sys.executable, "-c", _PLAY, str(seed), str(rounds), what], size=SIZE)
    try:
        assert terminal.wait(120 + 10 * rounds) == 7, terminal.text[-2000:]
        while terminal.read(0.2):
            pass
        return terminal.output
    finally:
        terminal.close()


def check_played(seed: int, rounds: int) -> None:
    harmless = shapes(played(0, 2, "harmless"))
    assert "m" in harmless
    assert "?1049h" in harmless
    assert shapes(played(seed, rounds, "nasty")) <= harmless


def check_pasted(folder: Path, seed: int, count: int) -> None:
    """Paste `count` texts, some of them no UTF-8, and Enter after each; what is sent is what was pasted."""
    rng = random.Random(seed)
    sent = folder / "sent.jsonl"
    terminal = Terminal([sys.executable, "-c", _PASTE, str(sent)], size=(80, 24))
    try:
        terminal.wait_for("Message")
        expected = []
        for _ in range(count):
            raw = nasty_bytes(rng) if rng.random() < 0.5 else nasty(rng).encode("utf-8", "replace")
            raw = b"begin " + raw.replace(b"\x1b[201~", b"")[:3000] + b" end"
            shown = raw.replace(b"\x1b", "␛".encode()).replace(b"\x00", "␀".encode())
            expected.append(shown.decode("utf-8", "replace"))
            os.write(terminal._master, b"\x1b[200~" + raw + b"\x1b[201~")
            os.write(terminal._master, b"\r")
            while not sent.exists() or len(sent.read_text().splitlines()) < len(expected):
                terminal.read(0.02)
                assert terminal.process.poll() is None, terminal.text[-2000:]
        got = [json.loads(line) for line in sent.read_text().splitlines()]
        assert [text.split() for text in got] == [text.split() for text in expected]
        terminal.send("\x11")
        assert terminal.wait() == 0
        while terminal.read(0.2):  # to the end: half a sequence would be taken for a control character
            pass
        shapes(terminal.output)
    finally:
        terminal.close()


def test_a_terminal_gets_nothing_from_nasty_texts_that_it_would_obey() -> None:
    check_played(5, 3)


def test_what_is_pasted_is_what_is_sent_also_when_it_is_no_text(tmp_path: Path) -> None:
    check_pasted(tmp_path, 5, 25)


@pytest.mark.soak
def test_a_terminal_gets_nothing_from_a_thousand_nasty_texts() -> None:
    check_played(77, 55)


@pytest.mark.soak
def test_five_hundred_pastes_arrive_as_they_are(tmp_path: Path) -> None:
    check_pasted(tmp_path, 77, 500)
