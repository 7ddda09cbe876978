"""Nasty text through every widget that shows what a model, a tool or a person says.

Nothing is obeyed, nothing is lost, nothing ends the program. `test_fuzz_terminal.py`: in a real terminal.
"""

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.events import Paste
from textual.widget import Widget
from textual.widgets import Static

from dsv4chat.app.themes import DARK
from dsv4chat.app.widgets.approval_bar import ApprovalBar
from dsv4chat.app.widgets.assistant_message import AssistantMessage
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.app.widgets.drawn_lines import DrawnLines
from dsv4chat.app.widgets.title_bar import TitleBar
from dsv4chat.app.widgets.tool_result import ToolResult
from dsv4chat.app.widgets.user_message import UserMessage
from dsv4chat.app.widgets.waiting_messages import WaitingMessages
from dsv4chat.encoding import (
    AnswerText,
    CompletionParser,
    ReasoningText,
    ToolCall,
    ToolCallArgument,
    ToolCallEnd,
    ToolCallStart,
)
from dsv4chat.store import MessageRecord
from dsv4chat.visible import visible
from tests.support.app_parts import small_tokenizer
from tests.support.fuzz import check_screen, cuts, nasty, nasty_bytes

SIZES = ((30, 250), (60, 200), (100, 150))
FIRST_BYTE = 3  # the id of byte 0 in the small tokenizer
LONGEST = 20_000  # characters of a message that are shown
MARK = "zyxq"  # no piece of the nasty text has it


class Stage(App[None]):
    """One tall column of widgets that come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.register_theme(DARK)
        self.theme = DARK.name
        self.column = Vertical()

    def compose(self) -> ComposeResult:
        yield self.column


Actor = tuple[Widget, Callable[[], Awaitable[None]]]  # a widget, and what it is told once it is on the stage


async def nothing() -> None:
    """For a widget that has all it shows from the beginning."""


def record(role: str, content: str, **more: Any) -> MessageRecord:
    return MessageRecord(1, 1, None, role, content, 0.0, **more)


def live_answer(rng: random.Random) -> Actor:
    thought, said = nasty(rng), nasty(rng) + f"\n\n{MARK}"
    call = ToolCall("1", nasty(rng), nasty(rng), valid=rng.random() < 0.5, error=nasty(rng))
    done = record("assistant", said, reasoning=thought, tool_calls=(call,), error=nasty(rng), state="failed")
    widget = AssistantMessage(record("assistant", ""), live=True, unfolded=rng.random() < 0.7)

    async def act() -> None:
        for piece in cuts(rng, thought):
            await widget.feed([ReasoningText(piece)])
        for piece in cuts(rng, said):
            await widget.feed([AnswerText(piece)])
        await widget.feed([ToolCallStart(0, call.name), ToolCallArgument(0, call.arguments)])
        if rng.random() < 0.8:
            await widget.end(done, [ToolCallEnd(0, call)])

    return widget, act


def broken_bytes(rng: random.Random) -> Actor:
    """What a model that samples any bytes says, through the decoder and the parser."""
    tokenizer = small_tokenizer()
    decoder, parser = tokenizer.decoder(), CompletionParser(True, tokenizer=tokenizer)
    widget = AssistantMessage(record("assistant", ""), live=True, unfolded=True)
    ids = [FIRST_BYTE + byte for byte in nasty_bytes(rng)[:2000]]

    async def act() -> None:
        for number in range(0, len(ids), 100):
            pieces = [(decoder.push(id), id) for id in ids[number : number + 100]]
            await widget.feed([event for piece in pieces for event in parser.push(*piece)])
        await widget.feed(parser.finish("stop", decoder.flush()))
        said = parser.message()
        await widget.end(record("assistant", said.content, reasoning=said.reasoning))

    return widget, act


def finished_answer(rng: random.Random) -> Actor:
    call = ToolCall("1", nasty(rng), f'{{"a": "{nasty(rng)}"}}')
    said = nasty(rng) + f"\n\n{MARK}"
    return (
        AssistantMessage(record("assistant", said, reasoning=nasty(rng), tool_calls=(call,)), unfolded=True),
        nothing,
    )


def message(rng: random.Random) -> Actor:
    return UserMessage(record("user", nasty(rng) + MARK)), nothing


def result(rng: random.Random) -> Actor:
    return ToolResult(record("tool", MARK + nasty(rng))), nothing


def composer(rng: random.Random) -> Actor:
    widget = Composer()
    text = nasty(rng).encode("utf-8", "replace").decode()  # a terminal sends no halves of surrogate pairs

    async def act() -> None:
        await widget._on_paste(Paste(text))
        # All that separates lines in Unicode is a line break in the input, and nothing at the very end.
        assert "".join(widget.whole_text.splitlines()) == "".join(text.splitlines())

    return widget, act


def waiting(rng: random.Random) -> Actor:
    widget = WaitingMessages()

    async def act() -> None:
        widget.add(MARK + nasty(rng), "after this answer")

    return widget, act


def approval(rng: random.Random) -> Actor:
    widget = ApprovalBar()

    async def act() -> None:
        widget.ask(MARK + nasty(rng), nasty(rng), focus=False)

    return widget, act


def title(rng: random.Random) -> Actor:
    widget = TitleBar()

    async def act() -> None:
        widget.title = nasty(rng)
        widget.model = nasty(rng)

    return widget, act


ACTORS = (
    live_answer,
    broken_bytes,
    finished_answer,
    message,
    result,
    composer,
    waiting,
    approval,
    title,
)


async def play(seed: int, rounds: int) -> None:
    """`rounds` times one of each on the stage; every text of it is a fuzzed piece."""
    rng = random.Random(seed)
    stage = Stage()
    async with stage.run_test(size=rng.choice(SIZES)) as pilot:
        for _ in range(rounds):
            cast = [actor(rng) for actor in ACTORS]
            with stage.batch_update():  # drawn once, not after each piece
                await stage.column.mount(*(widget for widget, _ in cast))
                for _, act in cast:
                    await act()
            await pilot.pause()
            check_screen(stage)
            for widget, _ in cast:
                check_shown(widget)
            await stage.column.remove_children()


def check_shown(widget: Widget) -> None:
    """That a text is there in full, escaped; of Markdown what stands after the nasty part."""
    if isinstance(widget, UserMessage | ToolResult):
        shown = widget if isinstance(widget, UserMessage) else widget.query_one(Static)
        assert squeezed(visible(widget.record.content[:LONGEST])) in squeezed(str(shown.render()))
    if isinstance(widget, AssistantMessage):
        if MARK in widget.record.content:
            assert MARK in texts(widget)
        if widget.thinking is not None and widget.thinking.unfolded:
            assert squeezed(visible(widget.thinking.text)) in squeezed(texts(widget.thinking))


def texts(widget: Widget) -> str:
    """All that stands on the widgets below, in no certain order."""
    plain = [str(part.render()) for part in widget.query(Static)]
    drawn = [
        line.plain
        for part in widget.walk_children()
        if isinstance(part, DrawnLines)
        for line in part.lines(part.size.width or 80)
    ]
    return "".join([*plain, *drawn])


def squeezed(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("seed", range(3))
async def test_nasty_texts_are_shown_and_not_obeyed(seed: int) -> None:
    await play(seed, 3)


@pytest.mark.soak
async def test_ten_thousand_nasty_texts_are_shown_and_not_obeyed() -> None:
    for seed in range(100, 145):
        await play(seed, 12)
