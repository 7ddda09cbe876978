"""The widgets of tools and commands, each alone."""

from collections.abc import Sequence

import pytest
from textual.widgets import OptionList

from dsv4chat.app.code_blocks import CodeBlock
from dsv4chat.app.screens.approvals_screen import ApprovalsScreen
from dsv4chat.app.screens.code_screen import CodeScreen
from dsv4chat.app.widgets.approval_bar import ApprovalBar
from dsv4chat.app.widgets.command_offers import CommandOffers
from dsv4chat.app.widgets.message_list import MessageList
from dsv4chat.app.widgets.tool_card import ToolCard
from dsv4chat.app.widgets.tool_result import ToolResult
from dsv4chat.encoding import ToolCall
from dsv4chat.store import MessageRecord
from tests.support.host import drawn, hosted, hosted_screen


def record(number: int, role: str, content: str, **more: object) -> MessageRecord:
    return MessageRecord(number, 1, number - 1 or None, role, content, 0.0, **more)  # type: ignore[arg-type]


async def test_the_approval_bar_shows_the_question_and_gives_the_answer() -> None:
    async with hosted(ApprovalBar, (50, 12)) as (host, pilot):
        bar = host.query_one(ApprovalBar)
        assert drawn(host) == ""
        bar.ask("[b]x", '{"path": "a\\nb", "count": 3, "deep": {"k": ["ü"]}}', focus=True)
        await pilot.pause()
        shown = drawn(host)
        assert "Run [b]x?" in shown
        assert 'path: a b, count: 3, deep: {"k": ["ü"]}' in " ".join(shown.replace("│", " ").split())
        assert "Enter answers" in shown
        await pilot.press("down", "down", "enter")
        await pilot.pause()
        decided = [message for message in host.heard if isinstance(message, ApprovalBar.Decided)]
        assert [message.answer for message in decided] == ["no"]
        assert bar.hide()
        await pilot.pause()
        assert drawn(host) == ""


@pytest.mark.parametrize("arguments", ["{", "[1, 2]", "x" * 5000, ""])
async def test_the_approval_bar_shows_arguments_of_any_kind_in_a_few_lines(arguments: str) -> None:
    async with hosted(ApprovalBar, (50, 12)) as (host, pilot):
        host.query_one(ApprovalBar).ask("tool", arguments, focus=False)
        await pilot.pause()
        assert "Never run this tool" in drawn(host)
        assert "Tab, then Enter answers" in drawn(host)
        assert arguments[:3] in drawn(host)


@pytest.mark.parametrize(
    ("said", "words"),
    [("once", "you allowed it once"), ("always", "for good"), ("never", "did not allow"), (None, "⚙ clock")],
)
async def test_a_card_of_the_history_says_what_the_person_said(said: str | None, words: str) -> None:
    async with hosted(lambda: ToolCard("clock", ToolCall("1", "clock", "{}"), said)) as (host, _):
        assert words in drawn(host)


async def test_a_card_tells_what_becomes_of_its_call_unless_that_is_invalid() -> None:
    valid, invalid = ToolCall("1", "clock", "{}"), ToolCall("2", "x", "{", valid=False, error="cut off")
    async with hosted(lambda: ToolCard("clock", valid)) as (host, pilot):
        host.query_one(ToolCard).note("ran 2.00 ms")
        await pilot.pause()
        assert "ran 2.00 ms" in drawn(host)
    async with hosted(lambda: ToolCard("x", invalid)) as (host, pilot):
        host.query_one(ToolCard).note("not run")
        await pilot.pause()
        assert "invalid: cut off" in drawn(host)
        assert "not run" not in drawn(host)


async def test_results_name_their_tool_when_the_call_is_among_the_messages() -> None:
    calls = (ToolCall("call_00", "clock", "{}"), ToolCall("call_01", "calculator", "{}"))
    path = [
        record(1, "user", "go"),
        record(2, "assistant", "", tool_calls=calls),
        record(3, "tool", "now", tool_call_id="call_00"),
        record(4, "tool", "Error: division by zero", tool_call_id="call_01"),
    ]
    async with hosted(MessageList, (60, 30)) as (host, pilot):
        await host.query_one(MessageList).show(path, {})
        await pilot.pause()
        assert "↳ clock  now" in drawn(host)
        assert "↳ calculator  Error: division by zero" in drawn(host)
        assert [result.has_class("-error") for result in host.query(ToolResult)] == [False, True]


@pytest.mark.parametrize(
    ("content", "words"),
    [("", "(nothing)"), ("a line\n" * 5000, "and 15,000 more characters")],
    ids=["nothing", "much"],
)
async def test_a_result_alone_is_shown_whatever_it_is(content: str, words: str) -> None:
    async with hosted(lambda: ToolResult(record(1, "tool", content)), (60, 20)) as (host, pilot):
        result = host.query_one(ToolResult)
        assert result.size.height <= 14
        result.scroll_end(animate=False)
        await pilot.pause()
        assert words in drawn(host)


LINES = [("/new", "Begin"), ("/next", "Go on"), ("/no", "Refuse")]


async def test_offers_move_their_mark_and_hand_a_text_over() -> None:
    async with hosted(CommandOffers, (40, 10)) as (host, pilot):
        offers = host.query_one(CommandOffers)
        assert not offers.take_key("enter")
        offers.show(LINES)
        await pilot.pause()
        assert "/next  Go on" in drawn(host)
        assert offers.marked == "/new"
        assert offers.take_key("up")
        assert offers.marked == "/no"
        assert offers.take_key("down")
        assert offers.take_key("down")
        assert offers.marked == "/next"
        assert not offers.take_key("x")
        offers.show(LINES[1:])
        assert offers.marked == "/next"
        assert offers.take_key("tab")
        assert offers.take_key("enter")
        await pilot.pause()
        chosen = [message for message in host.heard if isinstance(message, CommandOffers.Chosen)]
        assert [(message.text, message.sent) for message in chosen] == [("/next", False), ("/next", True)]
        assert offers.take_key("escape")
        assert offers.marked is None
        await pilot.pause()
        assert drawn(host) == ""


async def test_the_approvals_screen_goes_round_and_tells_each_step() -> None:
    kept: list[tuple[str, str | None]] = []
    tools: Sequence[dict[str, object]] = [{"name": "a", "description": "First."}, {"name": "b[i]"}]
    screen = ApprovalsScreen(tools, {"b[i]": "never"}, lambda tool, decision: kept.append((tool, decision)))
    async with hosted_screen(lambda: screen) as (host, pilot, given):
        assert "First." in drawn(host)
        assert "never runs" in drawn(host)
        await pilot.press("enter", "enter", "enter", "down", "enter", "escape")
        await pilot.pause()
        assert kept == [("a", "always"), ("a", "never"), ("a", None), ("b[i]", None)]
        assert given == [None]


async def test_the_code_screen_gives_back_a_blocks_text() -> None:
    blocks = [CodeBlock("py", "\n\nprint('[x]')\n"), CodeBlock("", ""), CodeBlock("sh", "ls\nls")]
    async with hosted_screen(lambda: CodeScreen(blocks)) as (host, pilot, given):
        shown = drawn(host)
        assert "print('[x]')" in shown
        assert "sh 2 lines" in shown
        assert host.screen.query_one(OptionList).highlighted == 2
        await pilot.press("up", "up", "enter")
        await pilot.pause()
        assert given == ["\n\nprint('[x]')\n"]
