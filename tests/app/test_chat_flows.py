"""The whole app over a scripted engine: what a person does and then sees."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from textual.events import MouseScrollDown, MouseScrollUp
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import OptionList

from dsv4chat.app.app import ChatApp
from dsv4chat.app.presenter import ChatPresenter
from dsv4chat.app.screens.conversations_screen import ConversationsScreen
from dsv4chat.app.screens.effort_screen import EffortScreen
from dsv4chat.app.screens.log_screen import LogScreen
from dsv4chat.app.screens.quit_screen import QuitScreen
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.app.widgets.finished_markdown import FinishedMarkdown
from dsv4chat.app.widgets.growing_text import GrowingText
from dsv4chat.app.widgets.metrics_line import MetricsLine
from dsv4chat.app.widgets.status_line import StatusLine
from dsv4chat.app.widgets.thinking_view import ThinkingView
from dsv4chat.app.widgets.tool_card import ToolCard
from dsv4chat.app.widgets.transcript import Transcript
from dsv4chat.engine_process import EngineFailed
from dsv4chat.store import open_history
from tests.support.app_parts import Parts, screen_text, wait_for, wait_until
from tests.support.fake_engine import Script

W = TypeVar("W", bound=Widget)
THOUGHT = "Let me see.</think>The capital is **Paris**."


@asynccontextmanager
async def chat(
    parts: Parts, size: tuple[int, int] = (120, 40), *, ready: bool = True
) -> AsyncIterator[tuple[ChatApp, Pilot[None]]]:
    app = parts.app()
    async with app.run_test(size=size, notifications=True) as pilot:
        await wait_until(pilot, lambda: app.session is not None)
        if ready:
            await wait_until(pilot, lambda: app.session and app.session.can_send)
            await pilot.pause(0.1)
        yield app, pilot


def one(app: ChatApp, kind: type[W]) -> W:
    return app.chat.query_one(kind)


async def say(pilot: Pilot[None], text: str) -> None:
    composer = pilot.app.screen.query_one(Composer)
    composer.insert(text)
    await pilot.press("enter")


async def answered(pilot: Pilot[None], app: ChatApp, count: int = 1) -> None:
    def done() -> bool:
        session = app.session
        return bool(
            session
            and not session.busy
            and not session.events
            and sum(record.role == "assistant" for record in session.path) >= count
        )

    await wait_until(pilot, done)
    await pilot.pause(0.1)


def tokens_shown(app: ChatApp) -> int:
    return app.chat._latency.tokens


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


async def test_a_message_typed_during_an_answer_waits_for_its_end(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT, "b</think>Second answer."]))
    parts.allow = 10
    async with chat(parts) as (app, pilot):
        await say(pilot, "first")
        await wait_until(pilot, lambda: tokens_shown(app) == 10)
        await say(pilot, "second")
        composer = one(app, Composer)
        await wait_until(pilot, lambda: composer.waiting)
        assert composer.text == "second"
        parts.engine.let(None)
        await answered(pilot, app, 2)
        assert "Second answer." in screen_text(app)
        assert composer.text == ""
        assert not composer.waiting


async def test_a_message_typed_while_loading_waits_for_the_engine(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT], pace=1.0))
    async with chat(parts, ready=False) as (app, pilot):
        await say(pilot, "early")
        await wait_until(pilot, lambda: one(app, Composer).waiting)
        parts.script.pace = 0.0
        await answered(pilot, app)
        assert "The capital is Paris." in screen_text(app)


async def test_changing_or_escaping_a_waiting_message_keeps_it_here(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    parts.allow = 10
    async with chat(parts) as (app, pilot):
        await say(pilot, "first")
        await wait_until(pilot, lambda: tokens_shown(app) == 10)
        await say(pilot, "second")
        composer = one(app, Composer)
        await wait_until(pilot, lambda: composer.waiting)
        await pilot.press("x")
        await wait_until(pilot, lambda: not composer.waiting)
        await pilot.press("enter")
        await wait_until(pilot, lambda: composer.waiting)
        await pilot.press("escape")
        await answered(pilot, app)
        assert composer.text == "secondx"
        assert len(parts.engine.asked) == 1


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


async def test_conversations_are_listed_and_opened(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["a</think>Answer one.", "b</think>Answer two."]))
    async with chat(parts) as (app, pilot):
        await say(pilot, "question one")
        await answered(pilot, app)
        await pilot.press("ctrl+n")
        await wait_until(pilot, lambda: "Answer one." not in screen_text(app))
        assert "Ask something" in screen_text(app)
        await say(pilot, "question two")
        await answered(pilot, app)
        await pilot.press("ctrl+o")
        await wait_until(pilot, lambda: isinstance(app.screen, ConversationsScreen))
        options = app.screen.query_one(OptionList)
        assert options.option_count == 2
        assert "question two" in screen_text(app)
        await pilot.press("down", "enter")
        await wait_until(pilot, lambda: "Answer one." in screen_text(app))
        assert "Answer two." not in screen_text(app)


async def test_after_a_restart_the_last_conversation_is_there(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT]))) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
    async with chat(Parts(tmp_path)) as (app, pilot):
        await wait_until(pilot, lambda: "The capital is Paris." in screen_text(app))
        assert "▸ Thought · 0.1 s · 12 tokens" in screen_text(app)


async def test_quitting_in_the_middle_keeps_the_partial_answer_as_interrupted(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    parts.allow = 25
    async with chat(parts) as (app, pilot):
        await say(pilot, "Capital?")
        await wait_until(pilot, lambda: tokens_shown(app) == 25)
        await pilot.press("ctrl+q")
    assert parts.engine.closed
    history = open_history(tmp_path).repository
    talk = history.latest_conversation()
    assert talk is not None
    assert history.path(talk.active_leaf)[-1].state == "interrupted"
    history.close()
    async with chat(Parts(tmp_path)) as (app, pilot):
        await wait_until(pilot, lambda: "interrupted" in screen_text(app))


async def test_when_the_screen_itself_fails_the_answer_is_kept_and_the_engine_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    parts.allow = 25

    async def fail(self: ChatPresenter) -> bool:
        raise RuntimeError("a fault of the screen")

    with pytest.raises(RuntimeError, match="a fault of the screen"):  # noqa: PT012 - it fails at some time
        async with chat(parts) as (app, pilot):
            await say(pilot, "Capital?")
            await wait_until(pilot, lambda: tokens_shown(app) == 25)
            monkeypatch.setattr(ChatPresenter, "drain", fail)
            await pilot.pause(1.0)
    assert parts.engine.closed
    history = open_history(tmp_path).repository
    talk = history.latest_conversation()
    assert talk is not None
    answer = history.path(talk.active_leaf)[-1]
    assert (answer.state, len(answer.ids)) == ("interrupted", 25)
    history.close()


async def test_a_dying_engine_is_explained_and_restarted_by_a_key(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT, "c</think>Back again."]))
    parts.allow = 25
    async with chat(parts) as (app, pilot):
        await say(pilot, "Capital?")
        await wait_until(pilot, lambda: tokens_shown(app) == 25)
        parts.engine.die()
        await wait_until(pilot, lambda: "F5 starts it again" in screen_text(app))
        shown = screen_text(app)
        assert "killed by SIGKILL" in shown
        assert "engine.log" in shown
        assert "The capi" in shown
        parts.allow = None
        await pilot.press("f5")
        await wait_until(pilot, lambda: app.session and app.session.can_send)
        await say(pilot, "And now?")
        await answered(pilot, app, 2)
        shown = screen_text(app)
        assert "Back again." in shown
        assert "F5" not in shown


async def test_the_engines_log_opens_on_a_key_and_obeys_nothing(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_bytes(b"first\n\x1b[31mred\x1b]52;c;AAAA\x07\nlast line\n")
    parts = Parts(tmp_path)
    async with chat(parts) as (app, pilot):
        parts.engine.log_path = log
        await pilot.press("f4")
        await wait_until(pilot, lambda: isinstance(app.screen, LogScreen))
        await wait_until(pilot, lambda: "␛[31mred␛]52;c;AAAA␇" in screen_text(app))
        await pilot.press("escape")
        await wait_until(pilot, lambda: app.screen is app.chat)


async def test_a_refused_question_is_explained_in_the_transcript(tmp_path: Path) -> None:
    refused = EngineFailed("ContextOverflowError", "The prompt has 9,000 tokens; the context holds 8,192.")
    async with chat(Parts(tmp_path, Script([refused, "x</think>Fine."]))) as (app, pilot):
        await say(pilot, "much too long")
        await answered(pilot, app)
        assert "The prompt has 9,000 tokens; the context holds 8,192." in screen_text(app)
        await say(pilot, "short")
        await answered(pilot, app, 2)
        assert "Fine." in screen_text(app)


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


async def test_scrolled_up_the_view_stays_and_the_end_key_returns(tmp_path: Path) -> None:
    text = "\n\n".join(f"Paragraph number {number}." for number in range(60))
    parts = Parts(tmp_path, Script([f"x</think>{text}"]))
    parts.allow = 600
    async with chat(parts, (80, 24)) as (app, pilot):
        await say(pilot, "Long")
        await wait_until(pilot, lambda: tokens_shown(app) == 600)
        await pilot.pause(0.2)
        transcript = one(app, Transcript)
        assert transcript.at_end
        await pilot.press("pageup")
        await wait_until(pilot, lambda: not transcript.at_end)
        await pilot.pause(0.3)
        place, view = (
            transcript.scroll_y,
            [line[:70].rstrip() for line in screen_text(app).splitlines()[1:12]],
        )
        parts.engine.let(1000)
        await wait_until(pilot, lambda: tokens_shown(app) == 1000)
        await pilot.pause(0.2)
        assert transcript.scroll_y == place
        assert [line[:70].rstrip() for line in screen_text(app).splitlines()[1:12]] == view
        assert "↓ 400 new tokens" in screen_text(app)
        await pilot.press("end")
        await wait_until(pilot, lambda: transcript.at_end and "new tokens" not in screen_text(app))
        parts.engine.let(None)
        await answered(pilot, app)
        assert "Paragraph number 59." in screen_text(app)
        assert transcript.max_scroll_y - transcript.scroll_y == 0


async def test_scrolling_down_to_the_end_follows_again(tmp_path: Path) -> None:
    text = "\n\n".join(f"Paragraph number {number}." for number in range(60))
    parts = Parts(tmp_path, Script([f"x</think>{text}"]))
    parts.allow = 900
    async with chat(parts, (80, 24)) as (app, pilot):
        await say(pilot, "Long")
        await wait_until(pilot, lambda: tokens_shown(app) == 900)
        await pilot.press("pageup")
        transcript = one(app, Transcript)
        await wait_until(pilot, lambda: not transcript.at_end)
        for _ in range(3):
            await pilot.press("pagedown")
            await pilot.pause(0.1)
        await wait_until(pilot, lambda: transcript.at_end)
        parts.engine.let(None)
        await answered(pilot, app)
        assert "Paragraph number 59." in screen_text(app)


async def test_the_mouse_wheel_scrolls_away_from_the_end_and_back(tmp_path: Path) -> None:
    text = "\n\n".join(f"Paragraph number {number}." for number in range(30))
    async with chat(Parts(tmp_path, Script([f"x</think>{text}"])), (80, 24)) as (app, pilot):
        await say(pilot, "Long")
        await answered(pilot, app)
        transcript = one(app, Transcript)
        await wait_until(pilot, lambda: transcript.at_end)
        bottom = transcript.scroll_y
        step = app.scroll_sensitivity_y
        await pilot._post_mouse_events([MouseScrollUp], transcript, offset=(5, 5))
        await wait_until(pilot, lambda: transcript.scroll_y == bottom - step)
        assert not transcript.at_end
        await pilot._post_mouse_events([MouseScrollUp], transcript, offset=(5, 5))
        await wait_until(pilot, lambda: transcript.scroll_y == bottom - 2 * step)
        await pilot._post_mouse_events([MouseScrollDown], transcript, offset=(5, 5))
        await wait_until(pilot, lambda: transcript.scroll_y == bottom - step)
        await pilot._post_mouse_events([MouseScrollDown], transcript, offset=(5, 5))
        await wait_until(pilot, lambda: transcript.at_end)


async def test_long_conversations_are_mounted_in_part_and_loaded_on_scroll(tmp_path: Path) -> None:
    history = open_history(tmp_path).repository
    from dsv4chat.store import ConversationSettings

    talk = history.create_conversation(ConversationSettings()).id
    parent = None
    for number in range(40):
        role = "user" if number % 2 == 0 else "assistant"
        parent = history.add_message(talk, parent, role, f"message {number}").id
    history.close()
    async with chat(Parts(tmp_path), (80, 24)) as (app, pilot):
        await wait_until(pilot, lambda: "message 39" in screen_text(app))
        transcript = one(app, Transcript)
        assert len(transcript._mounted) <= 20
        await pilot.press("ctrl+home")
        await wait_until(pilot, lambda: len(transcript._mounted) > 8)
        await pilot.pause(0.2)
        seen = screen_text(app)
        assert "message 31" in seen or "message 32" in seen
        for _ in range(5):
            await pilot.press("ctrl+home")
            await pilot.pause(0.1)
        await wait_until(pilot, lambda: "message 0\n" in screen_text(app) + "\n")
        assert "earlier" not in screen_text(app)
        await pilot.press("ctrl+end")
        await wait_until(pilot, lambda: "message 39" in screen_text(app))


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


NASTY = (
    "[red]x[/red] \x1b[31mred\x1b]52;c;QUJD\x07 \u202eabc\u202c &#x202e; <b>bold</b> \x9b1m [a](javascript:x)"
)


async def test_markup_and_escape_sequences_of_the_model_are_shown_not_obeyed(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([f"{NASTY}</think>{NASTY}\n\n- {NASTY}\n\n```\n{NASTY}\n```\n\n{NASTY}"]))
    async with chat(parts, (200, 60)) as (app, pilot):
        await pilot.press("ctrl+r")
        await say(pilot, NASTY)
        await answered(pilot, app)
        shown = screen_text(app)
        assert shown.count("[red]x[/red]") == 7  # the title is the question's
        assert shown.count("␛[31mred␛]52;c;QUJD␇") == 7
        assert shown.count("<U+009B>1m") == 6
        assert shown.count("<b>bold</b>") == 6
        for character in "\x1b\x07\x9b\u202e\u202c":
            assert character not in shown


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


async def test_panels_show_the_engines_numbers_and_hide_on_a_key(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    async with chat(parts) as (app, pilot):
        assert screen_text(app).count("no tokens yet") == 2
        await say(pilot, "Capital?")
        await answered(pilot, app)
        await wait_until(pilot, lambda: "148 ms" in screen_text(app))
        await pilot.pause(0.4)
        shown = screen_text(app)
        assert "136 + 12.0 ms" in shown
        assert f"0 of {len(parts.engine.asked[0])}" in shown
        assert "p50 12.0" in shown
        peak = max(app.chat._residual.rows[-1])
        assert f"{peak:.0f} at layer" in shown
        await pilot.press("ctrl+b")
        await wait_until(pilot, lambda: "Latency" not in screen_text(app))
        await pilot.press("ctrl+b")
        await wait_until(pilot, lambda: "Latency" in screen_text(app))


@pytest.mark.parametrize(
    ("size", "panels", "metrics"),
    [((120, 40), True, False), ((80, 24), False, True), ((40, 15), False, False), ((200, 60), True, False)],
)
async def test_the_screen_fits_small_and_large_terminals(
    tmp_path: Path, size: tuple[int, int], panels: bool, metrics: bool
) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT])), size) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
        await pilot.pause(0.3)
        lines = screen_text(app).splitlines()
        assert len(lines) == size[1]
        assert all(len(line) <= size[0] for line in lines)
        assert "The capital is Paris." in "\n".join(lines)
        assert ("Latency" in "\n".join(lines)) == panels
        assert (one(app, MetricsLine).region.height == 1) == metrics
        assert one(app, Composer).size.height >= 1


async def test_resizing_during_an_answer_keeps_everything(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    parts.allow = 20
    async with chat(parts) as (app, pilot):
        await say(pilot, "Capital?")
        await wait_until(pilot, lambda: tokens_shown(app) == 20)
        for size in ((40, 15), (200, 60), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause(0.1)
        parts.engine.let(None)
        await answered(pilot, app)
        assert "The capital is Paris." in screen_text(app)


async def test_loading_shows_bytes_tensors_and_seconds(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(pace=0.4))
    seen: list[str] = []
    async with chat(parts, ready=False) as (app, pilot):

        def found(words: Callable[[str], bool]) -> bool:
            seen.append(screen_text(app))
            return words(seen[-1])

        await wait_until(pilot, lambda: found(lambda text: "90 of 283 tensors" in text))
        assert "7.0 MB of 20.5 MB" in seen[-1]
        assert "1.0 s left" in seen[-1]
        parts.script.pace = 0.0
        await wait_until(pilot, lambda: app.session and app.session.can_send)
        await pilot.pause(0.1)
        assert "tensors" not in screen_text(app)


async def test_help_lists_the_keys(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path), (80, 50)) as (app, pilot):
        await pilot.press("f1")
        await wait_until(pilot, lambda: "Ctrl+G" in screen_text(app))
        await pilot.press("escape")
        await wait_until(pilot, lambda: app.screen is app.chat)


async def test_a_history_that_is_not_saved_is_marked_for_good(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with chat(Parts(tmp_path / "file" / "data", Script([THOUGHT]))) as (app, pilot):
        assert "history not saved" in screen_text(app)
        await say(pilot, "Capital?")
        await answered(pilot, app)
        assert "The capital is Paris." in screen_text(app)


async def test_a_finished_message_is_made_of_markdown_blocks_and_no_tail(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script(["x</think>One.\n\nTwo.\n\n- three\n- four"]))) as (app, pilot):
        await say(pilot, "List")
        await answered(pilot, app)
        sources = [block.source for block in app.chat.query(FinishedMarkdown)]
        assert "\n".join(sources) == "One.\n\nTwo.\n\n- three\n- four"
        assert not app.chat.query(".tail")


@pytest.mark.parametrize("size", [(20, 6), (10, 3), (1, 1), (300, 100)])
async def test_absurd_sizes_harm_nothing(tmp_path: Path, size: tuple[int, int]) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT])), size) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
        await pilot.press("f1", "escape", "ctrl+g", "escape", "ctrl+o", "escape", "ctrl+b", "ctrl+r")
        await pilot.resize_terminal(120, 40)
        await wait_until(pilot, lambda: "The capital is Paris." in screen_text(app))
