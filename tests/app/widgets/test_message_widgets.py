"""Messages and the conversation they stand in, each widget alone."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from textual.scrollbar import ScrollBar

from dsv4chat.app.token_cells import TokenCell
from dsv4chat.app.widgets.assistant_message import AssistantMessage
from dsv4chat.app.widgets.quick_scrollbar import QuickScrollBar
from dsv4chat.app.widgets.transcript import Transcript
from dsv4chat.app.widgets.welcome import Welcome
from dsv4chat.encoding import AnswerText, ReasoningText, ToolCall, ToolCallEnd, ToolCallStart
from dsv4chat.store import GenerationRecord, MessageRecord
from tests.support.app_parts import wait_until
from tests.support.host import Host, drawn, hosted


def record(number: int, role: str = "assistant", content: str = "", **more: object) -> MessageRecord:
    return MessageRecord(number, 1, number - 1 or None, role, content, state="complete", created=0.0, **more)  # type: ignore[arg-type]


def talk(messages: int) -> list[MessageRecord]:
    roles = ("user", "assistant")
    return [record(n + 1, roles[n % 2], f"{roles[n % 2]} message {n}") for n in range(messages)]


def text_of(host: Host) -> list[str]:
    """What is drawn, without the scrollbar."""
    return [line[:58].rstrip() for line in drawn(host).split("\n")]


async def test_the_welcome_says_how_to_begin_and_what_the_model_is() -> None:
    async with hosted(Welcome) as (host, pilot):
        assert "F1 shows all keys" in drawn(host)
        host.widget.show_model("[b]demo[/b]: 21M parameters")
        await pilot.pause()
        assert "[b]demo[/b]: 21M parameters" in drawn(host)


async def test_a_finished_answer_shows_its_parts_and_how_it_ended() -> None:
    made = GenerationRecord("m", "t", "preview", 2, tokens=7, tokens_per_second=50.0, ttft_ms=80.0)
    made = replace(made, reasoning_tokens=3, reasoning_ms=500.0, prompt_tokens=20, reused=12)
    call = ToolCall("1", "clock", "{}")
    answer = record(2, content="It is **noon**.", reasoning="Hm.", generation=made, tool_calls=(call,))
    async with hosted(lambda: AssistantMessage(answer), (100, 20)) as (host, _):
        shown = drawn(host)
        for words in ("▸ Thought", "It is noon.", "clock", "7 tokens · 50.0 tok/s · first after 80.0 ms"):
            assert words in shown
        assert "12 of 20 reused" in shown
        assert "Hm." not in shown


async def test_colours_for_an_answer_that_is_gone_meanwhile_are_given_up() -> None:
    answer = record(2, content="It is noon.")
    async with hosted(lambda: AssistantMessage(answer)) as (host, _):
        message = host.query_one(AssistantMessage)
        await message.remove()
        await message.set_coloured(True, [TokenCell(1, "It", "answer", False, -0.1, 1.0)])
        assert not host.query(AssistantMessage)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("stopped", "stopped"),
        ("interrupted", "the program ended before the answer did"),
        ("length", "the length limit was reached"),
        ("failed", "ended by an error"),
    ],
)
async def test_an_answer_that_did_not_end_by_itself_says_why(state: str, words: str) -> None:
    error = "no \x1b memory" if state == "failed" else None
    answer = replace(record(2, content="half"), state=state, error=error)
    async with hosted(lambda: AssistantMessage(answer), (100, 10)) as (host, _):
        assert "half" in drawn(host)
        assert words in drawn(host)
        assert ("no ␛ memory" in drawn(host)) == (state == "failed")


async def test_a_live_answer_is_fed_with_events_until_it_ends() -> None:
    begun = replace(record(2), state="writing")
    async with hosted(lambda: AssistantMessage(begun, live=True)) as (host, pilot):
        message = host.widget
        assert "Preparing the prompt…" in drawn(host)
        message.progress("Reading 100 tokens")
        await pilot.pause()
        assert "Reading 100 tokens…" in drawn(host)
        await message.count_thinking(2, 0.1)
        await message.feed([ReasoningText("first thought")])
        await pilot.pause()
        assert "Thinking" in drawn(host)
        assert "Reading" not in drawn(host)
        message.set_unfolded(True)
        await wait_until(pilot, lambda: "first thought" in drawn(host))
        await message.feed([AnswerText("An *answer*.\n\nMore"), ToolCallStart(0, "clock")])
        await message.feed([ToolCallEnd(0, ToolCall("1", "clock", "{}"))])
        await wait_until(pilot, lambda: "An answer." in drawn(host) and "clock" in drawn(host))
        await message.end(replace(begun, state="stopped", content="An *answer*.\n\nMore"))
        await wait_until(pilot, lambda: "stopped" in drawn(host))
        assert "More" in drawn(host)
        assert "Thought" in drawn(host)


async def test_the_conversation_begins_at_its_end_and_loads_more_above() -> None:
    async with hosted(lambda: Transcript(Welcome()), (60, 12)) as (host, pilot):
        transcript = host.widget
        assert "F1 shows all keys" in drawn(host)
        await transcript.show(talk(60))
        await wait_until(pilot, lambda: "message 59" in drawn(host))
        assert len(transcript.messages.mounted) < 24
        await transcript.to_beginning()
        await wait_until(pilot, lambda: "user message 0" in drawn(host))
        assert not transcript.at_end
        transcript.to_end()
        await wait_until(pilot, lambda: "message 59" in drawn(host))
        assert transcript.at_end


async def test_who_scrolled_up_is_told_what_came_since() -> None:
    async with hosted(Transcript, (60, 12)) as (host, pilot):
        transcript = host.widget
        records: Sequence[MessageRecord] = talk(8)
        await transcript.show(records)
        await transcript.begin(record(9, "user", "go"), replace(record(10), state="writing"))
        await wait_until(pilot, lambda: "go" in drawn(host))
        transcript.scroll_home(animate=False)
        await wait_until(pilot, lambda: not transcript.at_end)
        before = text_of(host)
        await transcript.feed([AnswerText("one\n\ntwo\n\nthree")], 5)
        await pilot.pause()
        assert text_of(host) == before
        behind = [message.tokens for message in host.heard if isinstance(message, Transcript.FellBehind)]
        assert behind[-1] == 5
        transcript.to_end()
        await wait_until(pilot, lambda: "three" in drawn(host))
        behind = [message.tokens for message in host.heard if isinstance(message, Transcript.FellBehind)]
        assert behind[-1] == 0


async def test_the_quick_scrollbar_is_drawn_as_textuals_own() -> None:
    async with hosted(Transcript, (60, 13)) as (host, pilot):
        transcript = host.widget
        await transcript.show(talk(8))
        await wait_until(pilot, lambda: "message 7" in drawn(host))
        bar, drawn_bars = transcript.vertical_scrollbar, set()
        assert isinstance(bar, QuickScrollBar)
        for place in range(int(transcript.max_scroll_y) + 1):
            transcript.scroll_to(y=place, animate=False)
            await pilot.pause()
            whole = bar.size.region
            for region in (whole, whole.shrink((2, 0, 3, 0))):
                own, other = bar.render_lines(region), ScrollBar.render_lines(bar, region)
                assert [[(s.text, s.style) for s in strip] for strip in own] == [
                    [(s.text, s.style) for s in strip] for strip in other
                ]
            drawn_bars.add(tuple(strip.text for strip in bar.render_lines(whole)))
        assert len(drawn_bars) > 3
        await pilot.click(bar, offset=(0, 0))
        await wait_until(pilot, lambda: transcript.scroll_y < transcript.max_scroll_y)
