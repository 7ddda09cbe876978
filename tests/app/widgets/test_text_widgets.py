"""Text on the screen: growing text, answers, Markdown, thinking, tool cards; each widget alone."""

import asyncio

import pytest
from textual.content import Content
from textual.geometry import Offset
from textual.selection import Selection

from dsv4chat.app.token_cells import TokenCell
from dsv4chat.app.widgets.answer_text import AnswerText
from dsv4chat.app.widgets.code_block import CodeBlock
from dsv4chat.app.widgets.finished_markdown import FinishedMarkdown
from dsv4chat.app.widgets.growing_text import GrowingText
from dsv4chat.app.widgets.thinking_view import ThinkingView
from dsv4chat.app.widgets.tool_card import ToolCard
from dsv4chat.app.widgets.user_message import UserMessage
from dsv4chat.encoding import ToolCall
from dsv4chat.store import MessageRecord
from tests.support.app_parts import wait_until
from tests.support.host import drawn, hosted


async def test_growing_text_shows_all_pieces_in_order() -> None:
    lines = [f"line {number}" for number in range(400)]
    async with hosted(GrowingText, (40, 400)) as (host, pilot):
        for line in lines:
            host.widget.append(line + "\n")
        await pilot.pause()
        assert drawn(host).split("\n") == lines
        await host.widget.clear()
        host.widget.append("again")
        await pilot.pause()
        assert drawn(host) == "again"


@pytest.mark.parametrize("text", ["x" * 30_000, "word " * 6000])
async def test_a_line_without_an_end_is_wrapped_and_nothing_lost(text: str) -> None:
    async with hosted(GrowingText, (100, 320)) as (host, pilot):
        for start in range(0, len(text), 777):
            host.widget.append(text[start : start + 777])
        await pilot.pause()
        assert drawn(host).replace("\n", "").replace(" ", "") == text.replace(" ", "")


async def test_growing_text_takes_text_before_it_is_mounted() -> None:
    async with hosted(lambda: GrowingText("a\n" * 3000 + "last"), (20, 10)) as (host, pilot):
        host.screen.scroll_end(animate=False)
        await pilot.pause()
        assert drawn(host).endswith("last")


async def test_a_line_more_costs_one_layout() -> None:
    async with hosted(AnswerText, (40, 400)) as (host, pilot):
        await host.widget.write("- begun")
        await pilot.pause()
        layouts: list[object] = []
        host.screen.screen_layout_refresh_signal.subscribe(host.screen, layouts.append)
        for number in range(10):
            await host.widget.write(f"\n- line {number}")
            await wait_until(pilot, lambda number=number: f"line {number}" in drawn(host))
            await pilot.pause(0.05)
        assert len(layouts) == 10


async def test_tabs_go_to_the_next_eighth_column_also_at_the_beginning() -> None:
    async with hosted(GrowingText) as (host, pilot):
        host.widget.append("\treturn x\n\t\ty\nabc\td\n")
        await pilot.pause()
        assert drawn(host) == "        return x\n                y\nabc     d"


async def test_growing_text_shows_markup_and_control_characters() -> None:
    async with hosted(lambda: GrowingText("[b]x[/b] \x1b[0m \u202e")) as (host, _):
        assert drawn(host) == "[b]x[/b] ␛[0m <U+202E>"


async def test_an_answer_is_plain_while_open_and_markdown_when_finished() -> None:
    async with hosted(AnswerText) as (host, pilot):
        await host.widget.write("First **par")
        await pilot.pause()
        assert drawn(host) == "First **par"
        await host.widget.write("agraph**.\n\nSecond *one*")
        await pilot.pause()
        assert drawn(host) == "First paragraph.\n\nSecond *one*"
        assert len(host.widget.query(FinishedMarkdown)) == 1
        await host.widget.finish()
        await pilot.pause()
        assert drawn(host) == "First paragraph.\n\nSecond one"
        assert host.widget.source == "First **paragraph**.\n\nSecond *one*"


async def test_an_open_fence_shows_its_code_where_it_will_stay() -> None:
    async with hosted(AnswerText) as (host, pilot):
        await host.widget.write("Code:\n\n```python\nx = [1]\n\ny = '[b]'\n")
        await pilot.pause()
        before = drawn(host)
        assert before == "Code:\n\n x = [1]\n\n y = '[b]'"
        await host.widget.write("```\n")
        await pilot.pause()
        assert drawn(host) == before


async def test_a_whole_answer_looks_like_one_that_was_streamed() -> None:
    text = (
        "# Head\n\nOne *two*.\n\n- a\n- b\n\n1. c\n2. d\n\n"
        "```\ncode\n```\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\nEnd"
    )
    async with hosted(lambda: AnswerText(text), (50, 40)) as (host, _):
        whole = drawn(host)
    async with hosted(AnswerText, (50, 40)) as (host, pilot):
        for character in text:
            await host.widget.write(character)
        await host.widget.finish()
        await pilot.pause()
        assert drawn(host) == whole
    assert whole.split("\n") == [
        "Head",
        "",
        "One two.",
        "",
        "• a",
        "• b",
        "",
        "1. c",
        "2. d",
        "",
        " code",
        "",
        "x  y",
        "─  ─",
        "1  2",
        "",
        "End",
    ]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("Use <div> and <script>x</script>", "Use <div> and <script>x</script>"),
        ("<details>\nhidden\n</details>", "<details> hidden </details>"),
        ("[name]: http://x.org\n\ntext", "[name]: http://x.org\n\ntext"),
        ("a &#27;[31m b &#x202e; c", "a \ufffd[31m b <U+202E> c"),
        ("![alt](http://x/y.png)", "🖼  alt"),
        ("`[b]code[/b]`", "[b]code[/b]"),
        ("~~gone~~", "gone"),
        ("- [ ] open\n- [x] done", "• [ ] open\n• [x] done"),
        ("- a\n\n  b\n- > quoted", "• a\n  b\n• ▌ quoted"),
        ("> a\n> - b\n> - c\n\nd", "▌ a\n▌ • b\n▌ • c\n\nd"),
        ("a\n\n> b\n>\n> 1. c\n>\n> ```\n> d\n> ```\n\ne", "a\n\n▌ b\n▌ 1. c\n▌\n▌  d\n\ne"),
        ("1) a\n2) b", "1. a\n2. b"),
        ("9. a\n10. b", " 9. a\n10. b"),
        ("-", "•"),
    ],
)
async def test_markdown_hides_and_obeys_nothing(source: str, shown: str) -> None:
    async with hosted(lambda: FinishedMarkdown(source)) as (host, _):
        text = "\n".join(line.rstrip() for line in drawn(host).split("\n"))
        assert text == shown


async def test_long_items_hang_and_inner_lists_are_indented() -> None:
    source = "- one two three four five six\n  - inner one two three\n- b\n"
    async with hosted(lambda: FinishedMarkdown(source), (20, 20)) as (host, pilot):
        assert drawn(host).split("\n") == [
            "• one two three four",
            "  five six",
            "  ‣ inner one two",
            "    three",
            "• b",
        ]
        await pilot.resize_terminal(40, 20)
        await pilot.pause()
        assert drawn(host).split("\n")[0] == "• one two three four five six"


async def test_table_columns_give_way_and_wrap_where_there_is_no_room() -> None:
    source = "| id | text |\n|---:|:--|\n| 7 | one two three four five six |\n| 12 | x |\n"
    async with hosted(lambda: FinishedMarkdown(source), (20, 20)) as (host, _):
        assert drawn(host).split("\n") == [
            "id  text",
            "──  ────────────────",
            " 7  one two three",
            "    four five six",
            "12  x",
        ]


async def test_a_long_list_and_a_long_table_are_one_widget_each() -> None:
    rows = "".join(f"| {number} | x |\n" for number in range(200))
    source = "".join(f"- item {number}\n" for number in range(200)) + f"\n| a | b |\n|---|---|\n{rows}"
    async with hosted(lambda: FinishedMarkdown(source)) as (host, _):
        assert len(host.widget.query("*")) == 2


async def test_folded_thinking_writes_only_its_line() -> None:
    async with hosted(lambda: ThinkingView(live=True)) as (host, pilot):
        view = host.widget
        for _ in range(50):
            view.add("some thought ")
            view.count(3, 0.05)
        await pilot.pause()
        assert drawn(host) == "▸ Thinking · 2.5 s · 150 tokens"
        assert not list(view.query(GrowingText))
        view.finish()
        await pilot.pause()
        assert drawn(host) == "▸ Thought · 2.5 s · 150 tokens"
        view.unfolded = True
        await wait_until(pilot, lambda: "some thought some thought" in drawn(host))
        assert view.text == "some thought " * 50


async def test_unfolded_thinking_is_bounded_and_follows_its_end() -> None:
    async with hosted(lambda: ThinkingView(live=True, unfolded=True), (40, 30)) as (host, pilot):
        for number in range(100):
            host.widget.add(f"step {number}\n")
            await pilot.pause()
        await wait_until(pilot, lambda: "step 99" in drawn(host))
        assert len(drawn(host).split("\n")) <= 13
        assert "step 50" not in drawn(host)


async def test_a_click_on_the_line_asks_to_unfold() -> None:
    async with hosted(lambda: ThinkingView("text", tokens=2, spent=0.5)) as (host, pilot):
        await pilot.click(".header")
        await pilot.pause()
        assert [type(message) for message in host.heard if isinstance(message, ThinkingView.Toggled)]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (ToolCall("1", "clock", "{}"), ["⚙ clock"]),
        (ToolCall("1", "sum", '{"a": 1, "b": "x\\ny"}'), ["⚙ sum", "a: 1", "b: x", "y"]),
        (
            ToolCall("1", "[b]x", '{"a', valid=False, error="not \x1bJSON"),
            ["⚙ [b]x", '{"a', "invalid: not ␛JSON"],
        ),
        (ToolCall("1", "list", "[1, 2]"), ["[1, 2]"]),
    ],
)
async def test_a_tool_card_shows_name_arguments_and_what_is_wrong(
    call: ToolCall, expected: list[str]
) -> None:
    async with hosted(lambda: ToolCard(call.name, call)) as (host, _):
        for part in expected:
            assert part in drawn(host)


async def test_a_tool_card_fills_while_the_call_is_written() -> None:
    async with hosted(lambda: ToolCard("sum")) as (host, pilot):
        host.widget.add('{"a": ')
        await pilot.pause()
        assert "being written" in drawn(host)
        assert '{"a":' in drawn(host)
        await host.widget.complete(ToolCall("1", "sum", '{"a": 1}'))
        await pilot.pause()
        assert "a: 1" in drawn(host)
        assert '{"a"' not in drawn(host)


async def test_a_question_is_shown_exactly_as_typed() -> None:
    text = "**not bold** [b]x[/b]\n  indented\n\x1b]52;c;AA\x07"
    record = MessageRecord(id=1, conversation=1, parent=None, role="user", content=text, created=0.0)
    long = MessageRecord(id=1, conversation=1, parent=None, role="user", content="y" * 1_000_000, created=0.0)
    async with hosted(lambda: UserMessage(long)) as (host, _):
        host.screen.scroll_end(animate=False)
        assert host.widget.size.height < 400
    async with hosted(lambda: UserMessage(record)) as (host, _):
        lines = [line.strip("█ ") for line in drawn(host).split("\n")]
        assert lines == ["**not bold** [b]x[/b]", "indented", "␛]52;c;AA␇"]


@pytest.mark.parametrize("width", [7, 12, 33])
@pytest.mark.parametrize("piece", [1, 3, 50])
async def test_text_that_grows_is_wrapped_like_the_whole_of_it(width: int, piece: int) -> None:
    text = "one two  three four, fifty-five\n\n  indented line of seven words\n\nwéird 漢字漢字漢字 end \nx"
    async with hosted(lambda: GrowingText(text), (width, 30)) as (host, _):
        whole = drawn(host)
    expected = [
        row.plain.rstrip() for line in text.split("\n") for row in Content(line).wrap(width) or [Content("")]
    ]
    assert whole.split("\n") == expected
    async with hosted(GrowingText, (width, 30)) as (host, pilot):
        for start in range(0, len(text), piece):
            host.widget.append(text[start : start + piece])
        await pilot.pause()
        assert drawn(host) == whole
        assert host.widget.source == text


async def test_text_is_wrapped_anew_when_the_window_changes() -> None:
    async with hosted(lambda: GrowingText("one two three four"), (9, 10)) as (host, pilot):
        assert drawn(host).split("\n") == ["one two", "three", "four"]
        await pilot.resize_terminal(30, 10)
        await pilot.pause()
        assert drawn(host) == "one two three four"


async def test_much_code_is_shown_at_once_and_coloured_soon() -> None:
    code = "".join(f"def function_{number}(): return {number}  # words\n" for number in range(100))
    async with hosted(lambda: FinishedMarkdown(f"```python\n{code}```\n"), (60, 120)) as (host, pilot):
        assert [line.strip() for line in drawn(host).split("\n")] == code.strip().split("\n")
        block = host.widget.query_one(CodeBlock)
        await wait_until(pilot, lambda: block._highlighted_code.spans)
        assert [line.strip() for line in drawn(host).split("\n")] == code.strip().split("\n")


async def test_text_that_is_drawn_line_by_line_can_be_selected() -> None:
    async with hosted(lambda: GrowingText("first line\nsecond line\nthird"), (40, 10)) as (host, pilot):
        host.screen.selections = {host.widget: Selection(Offset(6, 0), Offset(6, 1))}
        await pilot.pause()
        assert host.screen.get_selected_text() == "line\nsecond"


async def test_what_thinking_shows_may_change_while_it_is_unfolded_or_folded() -> None:
    cells = [TokenCell(1, "coloured", "reasoning", False, -0.1, 1.0)]
    async with hosted(lambda: ThinkingView("plain", tokens=2)) as (host, pilot):
        view = host.query_one(ThinkingView)
        unfolding = asyncio.create_task(view._unfold())
        await asyncio.sleep(0)
        view.show_tokens(cells)
        await unfolding
        await wait_until(pilot, lambda: "coloured" in drawn(host))
        view.show_tokens(None)
        view.unfolded = False
        await wait_until(pilot, lambda: "plain" not in drawn(host))
        view.unfolded = True
        view.unfolded = False
        view.show_tokens(cells)
        view.unfolded = True
        await wait_until(pilot, lambda: "coloured" in drawn(host))


async def test_thinking_that_is_taken_away_is_not_filled_anew() -> None:
    async with hosted(lambda: ThinkingView("plain", unfolded=True)) as (host, pilot):
        view = host.query_one(ThinkingView)
        body = view._body
        assert body is not None
        await body.remove()
        view.show_tokens([])
        await view._refill()
        await pilot.pause()
        assert view._stale
