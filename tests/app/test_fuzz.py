"""Random nasty text through every widget that shows what a model says: nothing is obeyed, all survive."""

import random
import re

import pytest

from dsv4chat.app.widgets.assistant_message import AssistantMessage
from dsv4chat.encoding import (
    AnswerText,
    ReasoningText,
    ToolCall,
    ToolCallArgument,
    ToolCallEnd,
    ToolCallStart,
)
from dsv4chat.store import MessageRecord
from tests.support.host import hosted

PIECES = (
    "word", " ", "\n", "\n\n", "\t", "[b]", "[/b]", "[red on blue]", "[@click=app.quit]x[/]", "**",
    "*", "_", "`", "```", "~~~", "```py\n", "- ", "1. ", "  ", "    ", "> ", "# ",
    "| a | b |\n|---|---|\n| c | d |\n", "|", "---\n", "<b>", "</think>", "<｜User｜>", "｜DSML｜",
    "[x](javascript:alert('1'))", "[x](\"')", "![i](http://x/\x1b)", "<http://x.org>",
    "www.example.org", "[a]: http://b", "&#27;", "&#x202e;", "&lt;", "\\", "\x00", "\x07", "\x08",
    "\r", "\x0b", "\x0c", "\x1b[2J", "\x1b]52;c;QQ==\x07", "\x1b]0;title\x1b\\", "\x1bP+q\x1b\\",
    "\x7f", "\x85", "\x9b31m", "\u200b", "\u200d", "\ufeff", "\u202e", "\u2066", "\u200f", "שלום",
    "مرحبا", "深度求索", "👩\u200d👩\u200d👧", "🇫🇷", "é́́", "\ud83d", "ﷺ", "\U000e0041", "x" * 300,
    "表" * 100,
)  # fmt: skip
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def text(generator: random.Random) -> str:
    return "".join(generator.choices(PIECES, k=generator.randint(1, 25)))


def cuts(generator: random.Random, whole: str) -> list[str]:
    places = sorted(generator.randrange(len(whole) + 1) for _ in range(3))
    return [whole[start:end] for start, end in zip([0, *places], [*places, len(whole)], strict=True)]


@pytest.mark.parametrize("seed", range(3))
async def test_random_answers_are_drawn_without_a_control_character(seed: int) -> None:
    await show_random_answers(seed, 7)


@pytest.mark.soak
async def test_many_random_answers_are_drawn_without_a_control_character() -> None:
    for seed in range(100, 200):
        await show_random_answers(seed, 100)


async def show_random_answers(seed: int, count: int) -> None:
    generator = random.Random(seed)
    for _ in range(count):
        thought, said, arguments = text(generator), text(generator), text(generator)
        call = ToolCall("1", text(generator), arguments, valid=False, error=text(generator))
        record = MessageRecord(
            id=1,
            conversation=1,
            parent=None,
            role="assistant",
            content=said,
            reasoning=thought,
            tool_calls=(call,),
            error=text(generator),
            state="failed",
            created=0.0,
        )

        def live(record: MessageRecord = record) -> AssistantMessage:
            return AssistantMessage(record, live=True, unfolded=True)

        async with hosted(live, (generator.choice((20, 60, 100)), 40)) as (host, pilot):
            for piece in cuts(generator, thought):
                await host.widget.feed([ReasoningText(piece)])
            for piece in cuts(generator, said):
                await host.widget.feed([AnswerText(piece)])
            await host.widget.feed([ToolCallStart(0, call.name), ToolCallArgument(0, arguments)])
            await pilot.pause()
            check(host)
            await host.widget.end(record, [ToolCallEnd(0, call)])
            await pilot.pause()
            check(host)


def check(host: object) -> None:
    width, height = host.size  # type: ignore[attr-defined]
    strips = host.screen._compositor.render_strips()[:height]  # type: ignore[attr-defined]
    for strip in strips:
        drawn = "".join(segment.text for segment in strip)
        assert not OBEYED.search(drawn), repr(drawn)
        assert strip.cell_length >= width or not drawn.strip()
