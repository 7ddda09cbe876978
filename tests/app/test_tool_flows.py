"""Tools on the screen: the key, the question, the card, the result; nothing is agreed to by typing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual.events import Key, Paste
from textual.pilot import Pilot
from textual.widgets import OptionList

from dsv4chat.app.app import ChatApp
from dsv4chat.app.preferences import Preferences
from dsv4chat.app.screens.approvals_screen import ApprovalsScreen
from dsv4chat.app.widgets.approval_bar import ApprovalBar
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.app.widgets.tool_result import ToolResult
from dsv4chat.app.widgets.waiting_messages import WaitingMessages
from dsv4chat.settings import Settings
from tests.support.app_parts import Parts, screen_text, wait_until
from tests.support.chat import answered, chat, one, say
from tests.support.fake_engine import Script
from tests.support.tool_calls import SUM, call


async def asked(pilot: Pilot[None], app: ChatApp) -> None:
    await wait_until(pilot, lambda: one(app, ApprovalBar).display)


@asynccontextmanager
async def asking(parts: Parts) -> AsyncIterator[tuple[ChatApp, Pilot[None]]]:
    """The app with tools on, where the answer to "go" waits for an approval."""
    async with chat(parts) as (app, pilot):
        await pilot.press("f3")
        await wait_until(pilot, lambda: "● tools" in screen_text(app))
        await say(pilot, "go")
        await asked(pilot, app)
        yield app, pilot


async def test_one_key_turns_tools_on_and_a_call_is_asked_for_run_and_shown(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([SUM, "There.</think>It is **408**."]))
    async with chat(parts) as (app, pilot):
        assert "tools" not in screen_text(app).splitlines()[-2]
        await pilot.press("f3")
        await wait_until(pilot, lambda: "● tools" in screen_text(app))
        assert "Tools are on: calculator, clock." in " ".join(screen_text(app).replace("▌", " ").split())
        await say(pilot, "What is 17 * 24?")
        await asked(pilot, app)
        shown = screen_text(app)
        assert "Run calculator?  expression: 17 * 24" in shown
        assert "waits for your answer" in shown
        assert "⚙ calculator" in shown
        await pilot.press("enter")
        await answered(pilot, app, 2)
        shown = screen_text(app)
        assert "↳ calculator  408" in shown
        assert "It is 408." in shown
        assert "▌ ran " in shown
        assert not one(app, ApprovalBar).display
        assert one(app, Composer).has_focus
        await pilot.press("f3")
        await wait_until(pilot, lambda: "● tools" not in screen_text(app))
    async with chat(Parts(tmp_path)) as (app, pilot):
        await wait_until(pilot, lambda: "It is 408." in screen_text(app))
        assert "↳ calculator  408" in screen_text(app)
        assert "you allowed it once" in screen_text(app)
        assert len(app.chat.query(ToolResult)) == 1


async def test_who_is_typing_agrees_to_nothing(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([SUM, "x</think>Done."]))
    async with asking(parts) as (app, pilot):
        await pilot.press(*"yes1")
        composer = one(app, Composer)
        await wait_until(pilot, lambda: composer.text == "yes1")
        assert composer.has_focus
        assert one(app, ApprovalBar).display
        await pilot.press("shift+tab", "down", "down", "enter")
        await answered(pilot, app, 2)
        assert app.session is not None
        assert app.session.path[2].content == "Error: the user does not allow this call"
        assert "not run: not allowed" in screen_text(app)
        assert composer.text == "yes1"


async def test_keys_that_follow_an_answer_at_once_are_a_message(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([SUM, "x</think>Done.", "y</think>Again."]))
    async with asking(parts) as (app, pilot):
        app.chat._rest_until = float("inf")  # a slow machine: the question is still there, its focus as well
        await pilot.press("down", "enter", "enter", *"more", "backspace", "enter")
        app.chat._rest_until = 0.0
        await answered(pilot, app, 3)
        assert app.session is not None
        assert [record.content for record in app.session.path if record.role == "user"] == ["go", "mor"]
        assert await app.session.ask(lambda history: history.approvals()) == {"calculator": "always"}


async def test_a_burst_of_keys_agrees_to_nothing(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([SUM, "x</think>Done."]))
    async with asking(parts) as (app, pilot):
        for key in ("y", "e", "s", "enter"):  # all there before any of them is looked at
            app.post_message(Key(key, key if len(key) == 1 else "\r"))
        await wait_until(pilot, lambda: len(one(app, WaitingMessages)) == 1)
        assert one(app, ApprovalBar).display
        assert one(app, WaitingMessages).text == "yes"


async def test_enter_pressed_twice_sends_no_draft(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([SUM, "x</think>Done."]))
    async with asking(parts) as (app, pilot):
        await pilot.press(*"draft", "shift+tab")
        assert app.focused is one(app, ApprovalBar.Choices)
        app.chat._rest_until = float("inf")  # the second one comes before the answered question is gone
        await pilot.press("enter", "enter")
        app.chat._rest_until = 0.0
        await answered(pilot, app, 2)
        assert one(app, Composer).text == "draft"
        assert len(one(app, WaitingMessages)) == 0


async def test_what_is_pasted_at_a_question_is_a_message(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([SUM, "x</think>Done."]))
    async with asking(parts) as (app, pilot):
        app.post_message(Paste("yes\nno"))
        app.post_message(Key("enter", "\r"))
        await wait_until(pilot, lambda: one(app, WaitingMessages).text == "yes\nno")
        assert one(app, ApprovalBar).display


async def test_another_key_for_the_answer_takes_the_place_of_enter(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([SUM, "x</think>Done."]))
    parts.preferences = Preferences(Settings(keys={"answer": "ctrl+y"}), tmp_path / "settings.toml")
    async with asking(parts) as (app, pilot):
        await pilot.press("enter", "down")
        assert one(app, ApprovalBar).display
        await pilot.press("ctrl+y")
        await answered(pilot, app, 2)
        assert app.session is not None
        assert await app.session.ask(lambda history: history.approvals()) == {"calculator": "always"}


async def test_a_question_that_comes_while_somebody_types_leaves_the_keys_there(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([SUM, "x</think>Done."]))
    parts.allow = 5
    async with chat(parts) as (app, pilot):
        await pilot.press("f3")
        await wait_until(pilot, lambda: "● tools" in screen_text(app))
        await say(pilot, "go")
        await pilot.press(*"next")
        parts.engine.let(None)
        await asked(pilot, app)
        assert one(app, Composer).has_focus
        assert "Shift+Tab, then Enter answers" in screen_text(app)
        await pilot.press("shift+tab")
        assert one(app, ApprovalBar.Choices).has_focus
        await pilot.press("shift+tab", "tab", "tab")
        assert one(app, Composer).has_focus
        await pilot.press("escape")
        await answered(pilot, app, 1)
        await wait_until(pilot, lambda: not one(app, ApprovalBar).display)
        assert "Error: the user stopped this" in screen_text(app)
        await wait_until(pilot, lambda: "stopping" not in screen_text(app))
        assert one(app, Composer).text == "next"


async def test_the_mouse_answers_too(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([SUM, "x</think>Done."]))
    async with asking(parts) as (app, pilot):
        await pilot.click(ApprovalBar.Choices, offset=(3, 1))
        await answered(pilot, app, 2)
        assert await app.session.ask(lambda history: history.approvals()) == {"calculator": "always"}  # type: ignore[union-attr]


async def test_what_may_run_unasked_can_be_looked_at_and_changed(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path)) as (app, pilot):
        await say(pilot, "/approvals")
        await wait_until(pilot, lambda: isinstance(app.screen, ApprovalsScreen))
        assert "asks before it runs" in screen_text(app)
        await pilot.press("down", "enter", "enter")
        await wait_until(pilot, lambda: "never runs" in screen_text(app))
        assert app.screen.query_one(OptionList).highlighted == 1
        await pilot.press("escape")
        assert app.session is not None
        assert await app.session.ask(lambda history: history.approvals()) == {"clock": "never"}


async def test_results_of_any_kind_are_shown_harmlessly(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def nasty() -> str:\n"
        "    return '[red]x[/red] \\x1b[31m\\x1b]52;c;QQ==\\x07 \\u202e' + '\\n'.join(map(str, range(100)))\n"
    )
    settings = Settings(tools={"functions": ["mine.py:nasty"]})
    parts = Parts(tmp_path / "data", Script(["x</think>" + call("nasty"), "x</think>Done."]))
    parts.preferences = Preferences(settings, tmp_path / "settings.toml")
    async with asking(parts) as (app, pilot):
        await pilot.press("enter")
        await answered(pilot, app, 2)
        shown = screen_text(app)
        assert "[red]x[/red] ␛[31m␛]52;c;QQ==␇ <U+202E>" in shown
        assert "\x1b" not in shown
        assert one(app, ToolResult).size.height <= 14
