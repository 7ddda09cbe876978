"""The input and the keys of the whole app."""

from pathlib import Path

import pytest
from textual._xterm_parser import XTermParser
from textual.events import Key
from textual.widgets import Input

from dsv4chat.app.screens.effort_screen import EffortScreen
from dsv4chat.app.screens.quit_screen import QuitScreen
from dsv4chat.app.screens.search_screen import SearchScreen
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.app.widgets.harmless_editing import typed
from dsv4chat.app.widgets.status_line import StatusLine
from dsv4chat.app.widgets.waiting_messages import WaitingMessages
from tests.support.app_parts import Parts, screen_text, wait_for, wait_until
from tests.support.chat import THOUGHT, answered, chat, one, say, tokens_shown
from tests.support.fake_engine import Script


async def test_a_message_typed_during_an_answer_waits_in_sight_and_is_sent_at_its_end(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT, "b</think>Second answer.", "c</think>Third answer."]))
    parts.allow = 10
    async with chat(parts) as (app, pilot):
        await say(pilot, "first")
        await wait_until(pilot, lambda: tokens_shown(app) == 10)
        await say(pilot, "second")
        await say(pilot, "third")
        await wait_until(pilot, lambda: len(one(app, WaitingMessages)) == 2)
        shown = screen_text(app)
        assert "› second" in shown
        assert "› third" in shown
        assert "sent after this answer" in shown
        assert one(app, Composer).text == ""
        parts.engine.let(None)
        await answered(pilot, app, 3)
        assert [record.content for record in app.session.path if record.role == "user"] == [  # type: ignore[union-attr]
            "first",
            "second",
            "third",
        ]
        assert "Third answer." in screen_text(app)
        assert one(app, WaitingMessages).display is False


async def test_a_message_typed_while_loading_waits_for_the_engine(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT], pace=1.0))
    async with chat(parts, ready=False) as (app, pilot):
        await say(pilot, "early")
        await wait_until(pilot, lambda: "sent when the engine is ready" in screen_text(app))
        parts.script.pace = 0.0
        await answered(pilot, app)
        assert "The capital is Paris." in screen_text(app)


async def test_the_up_key_takes_a_waiting_message_back_and_escape_all_of_them(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    parts.allow = 10
    async with chat(parts) as (app, pilot):
        await say(pilot, "first")
        await wait_until(pilot, lambda: tokens_shown(app) == 10)
        await say(pilot, "second")
        await say(pilot, "third")
        composer = one(app, Composer)
        await pilot.press("up")
        await wait_until(pilot, lambda: composer.text == "third")
        assert len(one(app, WaitingMessages)) == 1
        await pilot.press("escape")
        await answered(pilot, app)
        assert composer.text == "second\n\nthird"
        assert len(parts.engine.asked) == 1
        assert app.session is not None
        assert app.session.path[-1].state == "stopped"


async def test_up_and_down_walk_through_what_was_sent_and_keep_the_draft(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["a</think>A", "b</think>B"]))
    async with chat(parts) as (app, pilot):
        composer = one(app, Composer)
        for number, text in enumerate(("one\ntwo", "three"), 1):
            await say(pilot, text)
            await answered(pilot, app, number)
        composer.insert("draft")
        seen = []
        for key in ("up", "up", "up", "down", "down", "down", "down"):
            await pilot.press(key)
            seen.append(composer.text)
        # Down inside "one\ntwo" first goes to its second line.
        assert seen == ["three", "one\ntwo", "one\ntwo", "one\ntwo", "three", "draft", "draft"]
    async with chat(Parts(tmp_path)) as (app, pilot):
        composer = one(app, Composer)
        await wait_until(pilot, lambda: composer.text == "draft")
        for _ in range(200):  # the earlier prompts are read while the screen is there already
            await pilot.press("up")
            if composer.text != "draft":
                break
        assert composer.text == "three"


async def test_shift_enter_and_ctrl_j_make_new_lines_and_the_input_grows(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    async with chat(parts) as (app, pilot):
        composer = one(app, Composer)
        assert composer.size.height == 1
        await pilot.press("a", "shift+enter", "b", "ctrl+j", "c")
        await pilot.pause()
        assert composer.text == "a\nb\nc"
        assert composer.size.height == 3
        composer.insert("\n" * 30)
        await pilot.pause()
        assert composer.size.height == 8
        composer.text = "one\ntwo"
        await pilot.press("enter")
        await answered(pilot, app)
        assert app.session is not None
        assert app.session.path[0].content == "one\ntwo"


@pytest.mark.parametrize("key", ["shift+enter", "x"])
async def test_what_is_typed_takes_the_place_of_what_is_selected(tmp_path: Path, key: str) -> None:
    async with chat(Parts(tmp_path)) as (app, pilot):
        await pilot.press(*"one", *["shift+left"] * 2, key)
        await wait_until(pilot, lambda: one(app, Composer).text == ("o\n" if key == "shift+enter" else "ox"))


async def test_thinking_is_switched_and_effort_chosen_by_keys(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["Plain answer."]))
    async with chat(parts) as (app, pilot):
        await pilot.press("ctrl+t")
        await wait_until(pilot, lambda: "○ thinking off" in screen_text(app))
        await say(pilot, "Quick")
        await answered(pilot, app)
        assert parts.engine.asked[0][-1] == parts.tokenizer.think_end_id
        await pilot.press("ctrl+g")
        await wait_until(pilot, lambda: isinstance(app.screen, EffortScreen))
        await pilot.press("down", "down", "down", "enter")
        status = one(app, StatusLine)
        await wait_until(pilot, lambda: (status.thinking, status.effort) == (True, "max"))
        await wait_until(pilot, lambda: "again" in screen_text(app), "a notice of the cost")


async def test_ctrl_c_copies_then_stops_then_clears_then_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "TMUX"):
        monkeypatch.delenv(name, raising=False)
    parts = Parts(tmp_path, Script([THOUGHT]))
    parts.allow = 25
    async with chat(parts) as (app, pilot):
        await say(pilot, "Capital?")
        await wait_until(pilot, lambda: tokens_shown(app) == 25)
        composer = one(app, Composer)
        composer.insert("draft")
        composer.select_all()
        await pilot.press("ctrl+c")
        await wait_until(pilot, lambda: "5 characters" in screen_text(app), "a notice of what was copied")
        assert composer.text == "draft"
        composer.move_cursor((0, 5))
        await pilot.press("ctrl+c")
        await answered(pilot, app)
        assert "stopped" in screen_text(app)
        assert composer.text == "draft"
        await pilot.press("ctrl+c")
        assert composer.text == ""
        await pilot.press("ctrl+c")
        await wait_until(pilot, lambda: isinstance(app.screen, QuitScreen))
        await pilot.press("escape")
        await wait_until(pilot, lambda: app.screen is app.chat)
        await pilot.press("ctrl+c")
        await wait_until(pilot, lambda: isinstance(app.screen, QuitScreen))
        await pilot.press("ctrl+c")
        await wait_for(lambda: app._exit)


async def test_pasted_escape_sequences_are_drawn_harmlessly_and_sent_as_they_are(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["x</think>ok"]))
    async with chat(parts) as (app, pilot):
        one(app, Composer).insert("a\x1b[31mb\u202e")
        await pilot.pause(0.1)
        assert "a␛[31mb" in screen_text(app)
        await pilot.press("enter")
        await answered(pilot, app)
        assert app.session is not None
        assert app.session.path[0].content == "a\x1b[31mb\u202e"


FAMILY, PERSIAN = "\U0001f468\u200d\U0001f469\u200d\U0001f467", "می\u200cخواهم"
OTHERS = "co\u00adop\u00a0\u3000\u200f\U0001fae9"  # soft hyphen, fixed spaces, a mark, an emoji of Unicode 16


@pytest.mark.parametrize("text", [FAMILY, PERSIAN, OTHERS])
async def test_whatever_a_keyboard_sends_as_text_is_typed(tmp_path: Path, text: str) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    async with chat(parts) as (app, pilot):
        for key in XTermParser().feed(f"{text}\r"):
            app.post_message(key)
        await answered(pilot, app)
        assert app.session is not None
        assert app.session.path[0].content == text
        await pilot.press("ctrl+f")
        await wait_until(pilot, lambda: isinstance(app.screen, SearchScreen))
        for key in XTermParser().feed(text):
            app.post_message(key)
        await wait_until(pilot, lambda: app.screen.query_one(Input).value == text)


@pytest.mark.parametrize("character", ["\x01", "\x1b", "\x7f", "\x9b", "\u2028", "\ud800", "", None])
def test_control_characters_are_no_text(character: str | None) -> None:
    assert typed(Key("key", character)) is None


async def test_help_lists_the_keys(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path), (80, 50)) as (app, pilot):
        await pilot.press("f1")
        await wait_until(pilot, lambda: "Ctrl+G" in screen_text(app))
        await pilot.press("escape")
        await wait_until(pilot, lambda: app.screen is app.chat)
