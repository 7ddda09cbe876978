"""Themes and colour: other themes draw all; NO_COLOR means no colour; the question about a call, drawn."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from dsv4chat.app.themes import DARK, LIGHT
from dsv4chat.app.widgets.approval_bar import ApprovalBar
from tests.support.app_parts import Parts, screen_text, wait_until
from tests.support.chat import answered, chat, one, say
from tests.support.fake_engine import Script
from tests.support.terminal import Terminal
from tests.support.tool_calls import SUM

_COLOUR = re.compile(rb"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;[0-9;]*)?m")
_OPEN = "from dsv4chat.app import run; import sys; run(model=sys.argv[1])"


async def test_the_terminals_own_colours_draw_the_chat_and_what_opens_over_it(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([SUM, "x</think>**408**, `code`\n\n- list\n\n```\nfence\n```"]))
    async with chat(parts, (100, 30)) as (app, pilot):
        app.theme = "ansi-dark"
        await pilot.press("f3")
        await wait_until(pilot, lambda: "● tools" in screen_text(app))
        await say(pilot, "go")
        await wait_until(pilot, lambda: one(app, ApprovalBar).display)
        await pilot.press("enter")
        await answered(pilot, app, 2)
        for key in ("f1", "f8", "ctrl+f", "ctrl+p"):
            await pilot.press(key)
            await wait_until(pilot, lambda: app.screen is not app.chat)
            await pilot.press("escape")
            await wait_until(pilot, lambda: app.screen is app.chat)
        assert "408, code" in screen_text(app)


def drawn_with(environment: dict[str, str], folder: Path) -> bytes:
    """All that the program writes until its first screen is there and something was typed."""
    terminal = Terminal([sys.executable, "-c", _OPEN, str(folder)], env=environment)
    try:
        terminal.wait_for("Message")
        terminal.send("/")
        terminal.wait_for("Begin a new conversation")
        terminal.send("\x11")
        terminal.wait()
    finally:
        terminal.close()
    return terminal.output


def test_no_color_means_no_colour_at_all(tmp_path: Path) -> None:
    home = {"DSV4CHAT_HOME": str(tmp_path / "home")}
    assert _COLOUR.search(drawn_with(home, tmp_path))
    plain = drawn_with({**home, "NO_COLOR": "1"}, tmp_path)
    assert not _COLOUR.search(plain)
    assert b"\x1b[7m" in plain or b";7m" in plain or b"\x1b[7;" in plain  # what is marked is reversed


@pytest.mark.parametrize("theme", [DARK.name, LIGHT.name])
def test_a_call_that_waits_for_approval(tmp_path: Path, snap_compare: Any, theme: str) -> None:
    app = Parts(tmp_path, Script([SUM])).app()

    async def before(pilot: Any) -> None:
        await wait_until(pilot, lambda: app.session and app.session.can_send)
        app.theme = theme
        app.session.tools.switch(True)
        await wait_until(pilot, lambda: "● tools" in screen_text(app))
        await say(pilot, "What is 17 * 24?")
        await wait_until(pilot, lambda: one(app, ApprovalBar).display)
        await pilot.pause(0.3)
        app.clear_notifications()
        await pilot.pause(0.2)

    assert snap_compare(app, terminal_size=(80, 24), run_before=before)
