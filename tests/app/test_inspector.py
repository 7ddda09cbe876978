"""A look inside every token: by keys and mouse, of new and of stored answers; colours by surprise."""

import math
from pathlib import Path

import pytest

from dsv4chat.app.screens.inspector_screen import InspectorScreen
from dsv4chat.app.token_cells import TokenCell, why_not
from dsv4chat.app.widgets.answer_text import AnswerText
from dsv4chat.app.widgets.approval_bar import ApprovalBar
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.app.widgets.token_panel import TokenPanel, percent
from dsv4chat.app.widgets.token_text import TokenText
from dsv4chat.app.widgets.transcript import Transcript
from dsv4chat.runtime.protocol import Alternative
from dsv4chat.store import GenerationRecord, MessageRecord
from tests.support.app_parts import Parts, screen_text, wait_until
from tests.support.chat import THOUGHT, answered, chat, one, say
from tests.support.fake_engine import Script, written_out
from tests.support.host import drawn, hosted, hosted_screen
from tests.support.tool_calls import call


def cell(text: str, share: float = 0.5, kind: str = "answer", control: bool = False) -> TokenCell:
    others = (Alternative(7, text, math.log(share)), Alternative(8, " other", math.log(0.01)))
    return TokenCell(7, text, kind, control, math.log(share), 12.5, (1.0, 20.0, 300.0), others)


CELLS = [
    *(cell(text) for text in ("One", " two", " three", "\n")),
    cell("four", 0.01),
    cell("</think>", control=True),
]


async def test_tokens_are_wrapped_like_text_and_the_cursor_moves_by_tokens_and_rows() -> None:
    async with hosted(lambda: TokenText(CELLS, controls=True), (8, 10)) as (host, pilot):
        assert drawn(host).split("\n") == ["One two", "three⏎", "four</th", "ink>"]
        text = host.widget
        assert [text.row_of(token) for token in range(6)] == [0, 0, 1, 1, 2, 3]
        assert text.beside(0, 1) == 2
        assert text.beside(1, 1) == 2
        assert text.beside(3, -1) == 1
        assert text.beside(4, -2) == 0
        assert text.beside(5, -1) == 4
        assert text.beside(5, 9) is None
        text.cursor = 1
        await pilot.pause()
        assert drawn(host).split("\n")[0] == "One two"
        one, two = list(host.screen._compositor.render_strips()[0])[:2]
        assert (one.text, two.text) == ("One", " two")
        assert two.style.bgcolor != one.style.bgcolor  # type: ignore[union-attr]
        assert two.style.bgcolor != two.style.color  # type: ignore[union-attr]


async def test_the_cursor_moves_also_while_the_text_waits_to_be_wrapped_anew() -> None:
    async with hosted(lambda: TokenText(CELLS, controls=True), (8, 10)) as (host, pilot):
        text = host.widget
        text.cursor = 0
        text.notify_style_update()  # as when the window loses the focus
        text.cursor = 1
        await pilot.pause()
        assert drawn(host).split("\n") == ["One two", "three⏎", "four</th", "ink>"]


async def test_tokens_that_come_later_look_like_those_that_were_there() -> None:
    words = [cell(f" word{number}" if number % 7 else f"\nline{number}") for number in range(60)]
    async with hosted(lambda: TokenText(words), (30, 40)) as (host, _):
        whole = drawn(host)
    async with hosted(TokenText, (30, 40)) as (host, pilot):
        for start in range(0, 60, 4):
            host.widget.append(words[start : start + 4])
            await pilot.pause()
        assert drawn(host) == whole


async def test_tokens_told_before_the_first_drawing_are_drawn_and_hidden_ones_have_no_place() -> None:
    text = TokenText()
    text.append([cell("one"), cell("</think>", control=True), cell(" two")])
    async with hosted(lambda: text, (20, 3)) as (host, _):
        assert drawn(host) == "one two"
        assert (text.row_of(0), text.row_of(1), text.beside(1, 1)) == (0, None, None)


async def test_the_less_probable_a_token_the_warmer_and_a_surprise_is_underlined() -> None:
    async with hosted(lambda: TokenText([cell("sure", 1.0), cell(" odd", 0.0001)]), (20, 3)) as (host, _):
        strip = host.screen._compositor.render_strips()[0]
        sure, odd = (next(s.style for s in strip if s.text.strip() == word) for word in ("sure", "odd"))
        assert sure is not None
        assert odd is not None
        assert not sure.underline
        assert odd.underline
        assert sure.color != odd.color


@pytest.mark.parametrize(("share", "text"), [(1.0, "100.0 %"), (0.1234, "12.3 %"), (0.00004, "0.004 %")])
def test_probabilities_as_people_read_them(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize("size", [(39, 30), (39, 11), (20, 5), (3, 3)])
async def test_the_panel_shows_what_there_is_room_for(size: tuple[int, int]) -> None:
    async with hosted(lambda: TokenPanel(CELLS), size) as (host, pilot):
        host.widget.show(CELLS, 0)
        await pilot.pause()
        shown = drawn(host)
        assert len(shown.split("\n")) <= size[1]
        if size[0] == 39:
            assert "50.0 %" in shown
            assert "12.5 ms" in shown
            assert "1.0 % " in shown
            assert "other" in shown
            assert "at layer 3" in shown


async def test_the_inspector_goes_over_every_token_of_an_answer(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    async with chat(parts) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
        one(app, Transcript).focus()
        await pilot.press("i")
        await wait_until(pilot, lambda: isinstance(app.screen, InspectorScreen))
        screen = app.screen
        assert isinstance(screen, InspectorScreen)
        await wait_until(pilot, lambda: screen._text.cursor is not None)
        ids = written_out(parts.tokenizer, THOUGHT)
        answer = ids.index(parts.tokenizer.think_end_id) + 1
        assert screen.cursor == answer
        await pilot.press("home")
        for number in range(len(ids)):
            assert screen.cursor == number
            shown = screen_text(app)
            assert f"{number + 1} of {len(ids)}" in shown
            assert f"id {ids[number]}" in shown
            assert f"log {-0.1 - (number % 7) / 10:.2f}" in shown
            assert f"{10 + number % 5}.0 ms" in shown
            await pilot.press("right")
        assert screen.cursor == len(ids) - 1
        assert "at layer" in screen_text(app)
        shown = screen_text(app)
        assert "</think>" in shown
        assert shown.count(" % ") >= 8  # the token's own and eight of the most probable ones
        await pilot.press("escape")
        await wait_until(pilot, lambda: app.screen is app.chat)


async def test_keys_go_by_rows_and_pages_to_both_ends_and_from_surprise_to_surprise() -> None:
    words = [cell("\n" if n % 5 == 4 else "word ", 0.02 if n in (40, 90) else 0.9) for n in range(150)]
    async with hosted_screen(lambda: InspectorScreen(words)) as (host, pilot, _):
        screen = host.screen
        assert isinstance(screen, InspectorScreen)
        await wait_until(pilot, lambda: screen._text.cursor is not None)
        seen = []
        for key in ("end", "right", "up", "down", "pageup", "home", "left", "up", "down", "pagedown"):
            await pilot.press(key)
            seen.append(screen.cursor)
        assert seen == [149, 149, 144, 149, 99, 0, 0, 0, 5, 55]
        surprises = []
        for key in ("p", "p", "n", "n", "n"):
            await pilot.press(key)
            surprises.append(screen.cursor)
        assert surprises == [40, 40, 90, 90, 90]
        assert len(host._notifications) == 3
        row = screen._text.row_of(90)
        box = screen.query_one("#text")
        assert row is not None
        assert box.scroll_y <= row < box.scroll_y + box.size.height


async def test_a_line_break_at_the_beginning_of_a_token_holds_no_key_up() -> None:
    words = [cell(text) for text in ("\nword", " more", "\nnext", " x", "\n\nlast")]
    async with hosted_screen(lambda: InspectorScreen(words)) as (host, pilot, _):
        screen = host.screen
        assert isinstance(screen, InspectorScreen)
        await wait_until(pilot, lambda: screen._text.cursor == 0)
        seen = []
        for key in ("down", "down", "down", "up", "up", "up", "right", "down"):
            await pilot.press(key)
            seen.append(screen.cursor)
        assert seen == [2, 4, 4, 2, 0, 0, 1, 3]


async def test_an_answer_without_tokens_has_nothing_to_move_over() -> None:
    async with hosted_screen(lambda: InspectorScreen([])) as (host, pilot, given):
        await pilot.press("right", "down", "end", "n")
        assert isinstance(host.screen, InspectorScreen)
        assert host.screen.cursor == 0
        await pilot.press("escape")
        assert given == [None]


async def test_the_mouse_points_at_tokens_of_a_stored_answer(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    async with chat(parts) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
    async with chat(Parts(tmp_path)) as (app, pilot):
        one(app, Transcript).focus()
        await pilot.press("enter")
        await wait_until(pilot, lambda: isinstance(app.screen, InspectorScreen))
        screen = app.screen
        assert isinstance(screen, InspectorScreen)
        await wait_until(pilot, lambda: screen._text.cursor is not None)
        await pilot.hover(TokenText, offset=(0, 0))
        await wait_until(pilot, lambda: screen.cursor == 0)
        await pilot.hover(TokenText, offset=(5, 0))
        await wait_until(pilot, lambda: screen.cursor > 0)
        await pilot.click(TokenText, offset=(0, 0))
        await wait_until(pilot, lambda: screen.cursor == 0)


def test_why_no_token_of_a_message_can_be_shown() -> None:
    def message(role: str, ids: tuple[int, ...], made: GenerationRecord | None) -> MessageRecord:
        return MessageRecord(1, 1, None, role, "text", 0.0, ids=ids, generation=made)

    made = GenerationRecord("demo", "abc", "preview", 1)
    assert why_not(message("assistant", (7,), made), "abc") is None
    for record, fingerprint, words in (
        (message("user", (), None), "abc", "Only answers"),
        (message("assistant", (7,), made), None, "when the model is loaded"),
        (message("assistant", (), made), "abc", "No figures"),
        (message("assistant", (), None), "abc", "No figures"),
        (message("assistant", (7,), made), "xyz", "another model (demo)"),
    ):
        assert words in (why_not(record, fingerprint) or "")


async def test_what_has_no_tokens_is_said(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT])), (140, 40)) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
        one(app, Transcript).focus()
        await pilot.press("up", "up", "i")
        await wait_until(pilot, lambda: "Only answers are made of tokens" in screen_text(app))


async def test_colours_show_the_tokens_of_old_and_new_answers_and_go_again(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT, "b</think>A **second** one."]))
    async with chat(parts) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
        transcript = one(app, Transcript)
        transcript.focus()
        await pilot.press("s")
        await wait_until(pilot, lambda: "The capital is **Paris**." in screen_text(app))
        one(app, Composer).focus()
        await say(pilot, "And?")
        await answered(pilot, app, 2)
        await wait_until(pilot, lambda: "A **second** one." in screen_text(app))
        transcript.focus()
        await pilot.press("s")
        await wait_until(pilot, lambda: "A second one." in screen_text(app))
        assert "The capital is Paris." in screen_text(app)
        assert not app.chat.query(TokenText)
        assert all(text.display for text in app.chat.query(AnswerText))


@pytest.mark.parametrize("first", [True, False])
async def test_colours_show_nothing_of_the_markup_of_a_tool_call(tmp_path: Path, first: bool) -> None:
    parts = Parts(tmp_path, Script(["x</think>I compute." + call("calculator", expression="1 + 2")]))
    async with chat(parts) as (app, pilot):
        await pilot.press("f3")
        await wait_until(pilot, lambda: "● tools" in screen_text(app))
        transcript, composer = one(app, Transcript), one(app, Composer)
        if first:
            transcript.focus()
            await pilot.press("s")
            composer.focus()
        await say(pilot, "What is 1 + 2?")
        await wait_until(pilot, lambda: one(app, ApprovalBar).display)
        if not first:
            transcript.focus()
            await pilot.press("s")
        await wait_until(pilot, lambda: len(app.chat.query(TokenText)) == 1)
        lines = [line[:60].rstrip() for line in screen_text(app).splitlines()]
        at = next(at for at, line in enumerate(lines) if line.endswith("I compute."))
        assert lines[at + 1] == ""
        assert "⚙ calculator" in lines[at + 2]


async def test_unfolded_thinking_is_coloured_while_it_is_written(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["One thought after another.</think>Done."]))
    parts.allow = 10
    async with chat(parts) as (app, pilot):
        one(app, Transcript).focus()
        await pilot.press("s", "ctrl+r")
        one(app, Composer).focus()
        await say(pilot, "Think")
        await wait_until(pilot, lambda: len(app.chat.query(TokenText)) == 1)
        parts.engine.let(None)
        await answered(pilot, app)
        await wait_until(pilot, lambda: "One thought after another." in screen_text(app))
        assert len(app.chat.query(TokenText)) == 2
