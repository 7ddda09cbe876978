"""Answers in the whole app: thinking, text, how they end."""

import gc
from pathlib import Path

import pytest
from textual.widget import MountError
from textual.widgets import Static

from dsv4chat.app import garbage
from dsv4chat.app.widgets.assistant_message import AssistantMessage
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.app.widgets.finished_markdown import FinishedMarkdown
from dsv4chat.app.widgets.growing_text import GrowingText
from dsv4chat.app.widgets.thinking_view import ThinkingView
from dsv4chat.app.widgets.tool_card import ToolCard
from dsv4chat.store import MessageRecord
from tests.support.app_parts import Parts, Ticks, screen_text, wait_until
from tests.support.chat import THOUGHT, answered, chat, one, say, tokens_shown
from tests.support.fake_engine import Script


async def test_a_question_is_answered_with_folded_thinking_and_markdown(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT]))) as (app, pilot):
        await say(pilot, "Capital of France?")
        await answered(pilot, app)
        shown = screen_text(app)
        assert "Capital of France?" in shown
        assert "The capital is Paris." in shown
        assert "▸ Thought" in shown
        assert "Let me see." not in shown
        assert "**" not in shown
        assert one(app, Composer).text == ""
        assert not list(app.chat.query(ThinkingView).first().query(GrowingText))


async def test_thinking_unfolds_in_a_bounded_box_and_folds_again(tmp_path: Path) -> None:
    thought = "\n".join(f"step {number}" for number in range(60))
    async with chat(Parts(tmp_path, Script([thought + "</think>Done."]))) as (app, pilot):
        await say(pilot, "Think hard")
        await answered(pilot, app)
        await pilot.press("ctrl+r")
        await wait_until(pilot, lambda: "step 59" in screen_text(app))
        shown = screen_text(app)
        assert "step 3\n" not in shown
        assert one(app, ThinkingView).size.height <= 13
        await pilot.press("ctrl+r")
        await wait_until(pilot, lambda: "step 59" not in screen_text(app))


async def test_unfolded_thinking_follows_while_it_is_written(tmp_path: Path) -> None:
    thought = "\n".join(f"step {number}" for number in range(60))
    parts = Parts(tmp_path, Script([thought + "</think>Done."]))
    parts.allow = 200
    async with chat(parts) as (app, pilot):
        await pilot.press("ctrl+r")
        await say(pilot, "Think hard")
        await wait_until(pilot, lambda: tokens_shown(app) == 200)
        await wait_until(pilot, lambda: "step 24" in screen_text(app))
        assert "▾ Thinking" in screen_text(app)
        parts.engine.let(None)
        await answered(pilot, app)
        await wait_until(pilot, lambda: "step 59" in screen_text(app))


async def test_garbage_is_looked_for_when_an_answer_is_over_and_nobody_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, looks = gc.get_threshold(), []
    monkeypatch.setattr(gc, "collect", lambda: looks.append(None))
    clock = Ticks()
    monkeypatch.setattr(garbage, "now", clock)
    parts = Parts(tmp_path, Script([THOUGHT]))
    parts.allow = 10
    try:
        async with chat(parts) as (app, pilot):
            await say(pilot, "Think")
            await wait_until(pilot, lambda: tokens_shown(app) == 10)
            assert gc.get_threshold()[2] > 1_000_000
            clock.now += 100
            app.chat._look_for_garbage()
            assert not looks, "while an answer is written"
            parts.engine.let(None)
            await answered(pilot, app)
            clock.now += 100
            await pilot.press("x")
            app.chat._look_for_garbage()
            assert not looks, "a key was pressed just now"
            clock.now += 100
            await wait_until(pilot, lambda: bool(looks))
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


async def test_escape_stops_and_keeps_the_partial_answer(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    parts.allow = 24
    async with chat(parts) as (app, pilot):
        await say(pilot, "Capital?")
        await wait_until(pilot, lambda: tokens_shown(app) == 24)
        assert "Stop" in screen_text(app).splitlines()[-1]
        await pilot.press("escape")
        await answered(pilot, app)
        shown = screen_text(app)
        assert "stopped · 24 tokens" in shown
        assert "The capital" in shown
        assert "Stop" not in shown.splitlines()[-1]


async def test_nothing_of_the_answer_is_lost_at_its_end(tmp_path: Path) -> None:
    text = "First.\n\n```\nopen fence\nlast line"
    async with chat(Parts(tmp_path, Script([f"x</think>{text}"]))) as (app, pilot):
        await say(pilot, "Code")
        await answered(pilot, app)
        assert "last line" in screen_text(app)
        assert not list(app.chat.query(".tail"))


async def test_a_tool_call_is_shown_as_a_card(tmp_path: Path) -> None:
    call = (
        'Hm.</think>I will compute.\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="calculator">\n'
        '<｜DSML｜parameter name="expression" string="true">6 * 7</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜tool_calls>"
    )
    async with chat(Parts(tmp_path, Script([call]))) as (app, pilot):
        await say(pilot, "6 times 7")
        await answered(pilot, app)
        shown = screen_text(app)
        assert "I will compute." in shown
        assert "⚙ calculator" in shown
        assert "expression: 6 * 7" in shown
        assert "DSML" not in shown
    async with chat(Parts(tmp_path)) as (app, pilot):
        await wait_until(pilot, lambda: "expression: 6 * 7" in screen_text(app))
        assert len(app.chat.query(ToolCard)) == 1


async def test_an_answer_left_inside_the_thinking_is_offered_as_the_answer(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script(["It is **Paris**."]))) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
        shown = screen_text(app)
        assert "It is Paris." in shown
        assert "did not end its thinking" in shown
        assert not app.chat.query(ThinkingView)
    async with chat(Parts(tmp_path)) as (app, pilot):
        await wait_until(pilot, lambda: "It is Paris." in screen_text(app))


async def test_a_finished_message_is_made_of_markdown_blocks_and_no_tail(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script(["x</think>One.\n\nTwo.\n\n- three\n- four"]))) as (app, pilot):
        await say(pilot, "List")
        await answered(pilot, app)
        sources = [block.source for block in app.chat.query(FinishedMarkdown)]
        assert "\n".join(sources) == "One.\n\nTwo.\n\n- three\n- four"
        assert not app.chat.query(".tail")


async def test_a_screen_that_is_half_gone_is_no_error_when_the_program_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT]))) as (app, pilot):
        presenter = app.chat.presenter
        assert presenter is not None
        detached = AssistantMessage(MessageRecord(9, 1, None, "assistant", "", state="writing", created=0.0))

        async def drain() -> bool:
            await detached.mount(Static())  # what showing a message comes to when its place is gone
            return True

        await pilot.pause(0.1)
        monkeypatch.setattr(presenter, "drain", drain)
        monkeypatch.setattr(app, "_exit", True)
        await app.chat.drain()
        monkeypatch.setattr(app, "_exit", False)
        with pytest.raises(MountError):
            await app.chat.drain()
        monkeypatch.undo()
