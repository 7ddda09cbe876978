"""The loop of answers and tool calls, without a model: every call gets exactly one result, come what may."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dsv4chat.encoding import Message, ToolCall
from dsv4chat.tool_events import RoundsUsedUp, ToolDone, ToolEvent, ToolRunning
from dsv4chat.tool_loop import ToolLimits, ToolLoop
from dsv4chat.tools import Toolbox, ToolError, tool_from_function
from dsv4chat.tools.approval import Answer, Approvals, Policy


def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


def fails(kind: str) -> str:
    """Fail."""
    if kind == "tool":
        raise ToolError("no such thing")
    if kind == "exit":
        raise SystemExit(3)
    if kind == "timeout":
        raise TimeoutError("the far end is silent")
    raise ValueError("odd")


def talks(count: int) -> str:
    """Say much."""
    return "x" * count


async def waits(seconds: float) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return "waited"


RELEASE = threading.Event()


def blocks() -> str:
    """Wait in a thread."""
    RELEASE.wait(20)
    return "released"


TOOLBOX = Toolbox(map(tool_from_function, (double, fails, talks, waits, blocks)))


def call(name: str, arguments: str = "{}", number: int = 0, **more: Any) -> ToolCall:
    return ToolCall(f"call_{number:02}", name, arguments, **more)


def calling(*calls: ToolCall) -> Message:
    return Message("assistant", "", tool_calls=calls)


class Talk:
    """A conversation whose answers are given; what the loop does with it is kept in order."""

    def __init__(
        self,
        answers: Sequence[Message | None],
        *,
        approve: Callable[[ToolCall], bool] = lambda call: True,
        limits: ToolLimits | None = None,
    ) -> None:
        self.answers = list(answers)
        self.events: list[ToolEvent] = []
        self.taken: list[ToolDone] = []

        async def approved(call: ToolCall) -> bool:
            return approve(call)

        self.loop = ToolLoop(TOOLBOX, approved, self.events.append, limits)

    async def answer(self) -> Message | None:
        return self.answers.pop(0)

    async def take(self, done: ToolDone) -> None:
        self.taken.append(done)

    async def run(self) -> list[tuple[str, str]]:
        await asyncio.wait_for(self.loop.run(self.answer, self.take), 30)
        return [(done.outcome, done.result) for done in self.taken]


async def test_calls_are_run_in_order_until_an_answer_has_none() -> None:
    talk = Talk(
        [
            calling(call("double", '{"number": 4}'), call("double", '{"number": 5}', 1)),
            calling(call("double", '{"number": 9}')),
            Message("assistant", "done"),
            Message("assistant", "never asked for"),
        ]
    )
    assert await talk.run() == [("done", "8"), ("done", "10"), ("done", "18")]
    assert [done.message.tool_call_id for done in talk.taken] == ["call_00", "call_01", "call_00"]
    assert [type(event) for event in talk.events] == [ToolRunning, ToolDone] * 3
    assert len(talk.answers) == 1


@pytest.mark.parametrize("last", [None, Message("assistant", "hello")])
async def test_an_answer_without_calls_or_without_an_end_ends_it(last: Message | None) -> None:
    talk = Talk([last])
    assert await talk.run() == []


@pytest.mark.parametrize(
    ("bad", "outcome", "words"),
    [
        (call("double", "{", valid=False, error="It was cut off."), "invalid", "Error: It was cut off."),
        (call("unknown"), "invalid", "no tool unknown; the tools are: double, fails"),
        (call("double"), "invalid", 'Error: the parameter "number" is missing'),
        (call("double", '{"number": "x"}'), "invalid", "number"),
        (call("fails", '{"kind": "tool"}'), "error", "Error: no such thing"),
        (call("fails", '{"kind": "value"}'), "error", "Error: ValueError: odd"),
        (call("fails", '{"kind": "exit"}'), "error", "Error: the tool ended with SystemExit"),
        (call("fails", '{"kind": "timeout"}'), "error", "Error: TimeoutError: the far end is silent"),
    ],
)
async def test_faults_go_back_to_the_model(bad: ToolCall, outcome: str, words: str) -> None:
    talk = Talk([calling(bad), Message("assistant", "sorry")])
    ((seen, result),) = await talk.run()
    assert seen == outcome
    assert words in result


@pytest.mark.parametrize("slow", [call("waits", '{"seconds": 20}'), call("blocks")])
async def test_a_tool_that_takes_too_long_is_given_up(slow: ToolCall) -> None:
    RELEASE.clear()
    talk = Talk([calling(slow), Message("assistant", "sorry")], limits=ToolLimits(seconds=0.2))
    started = time.monotonic()
    assert await talk.run() == [("error", "Error: the tool did not answer within 0.2 s")]
    assert time.monotonic() - started < 10
    RELEASE.set()


async def test_a_long_result_is_cut_and_says_so() -> None:
    talk = Talk(
        [calling(call("talks", '{"count": 5000}')), Message("assistant", "")],
        limits=ToolLimits(characters=100),
    )
    ((_, result),) = await talk.run()
    assert result == "x" * 100 + "\n[cut: the first 100 of 5,000 characters]"


async def test_a_refused_call_is_not_run() -> None:
    talk = Talk(
        [
            calling(call("double", '{"number": 1}'), call("talks", '{"count": 1}', 1)),
            Message("assistant", ""),
        ],
        approve=lambda call: call.name == "talks",
    )
    assert await talk.run() == [("refused", "Error: the user does not allow this call"), ("done", "x")]
    assert [event.call.name for event in talk.events if isinstance(event, ToolRunning)] == ["talks"]


async def test_after_the_last_round_the_model_is_told_and_answers_once_more() -> None:
    again = calling(call("double", '{"number": 1}'))
    talk = Talk([again] * 3 + [Message("assistant", "two")], limits=ToolLimits(rounds=2))
    assert [outcome for outcome, _ in await talk.run()] == ["done", "done", "refused"]
    assert "answer with what you have" in talk.taken[-1].result
    assert [event for event in talk.events if isinstance(event, RoundsUsedUp)] == [RoundsUsedUp(2)]
    assert talk.answers == []


async def test_a_model_that_never_stops_calling_is_stopped() -> None:
    talk = Talk([calling(call("double", '{"number": 1}'))] * 10, limits=ToolLimits(rounds=2))
    assert [outcome for outcome, _ in await talk.run()] == ["done", "done", "refused", "refused"]
    assert len(talk.answers) == 6


async def test_stopping_gives_up_what_runs_and_answers_every_call() -> None:
    talk = Talk([calling(call("waits", '{"seconds": 20}'), call("double", '{"number": 1}', 1))])
    running = asyncio.create_task(talk.run())
    while not talk.events:
        await asyncio.sleep(0.01)
    talk.loop.stop()
    assert await running == [("stopped", "Error: the user stopped this")] * 2


async def test_stopping_while_the_person_is_asked_ends_the_asking() -> None:
    asked = asyncio.Event()

    async def approve(call: ToolCall) -> bool:
        asked.set()
        await asyncio.sleep(20)
        return True

    events: list[ToolEvent] = []
    taken: list[ToolDone] = []
    loop = ToolLoop(TOOLBOX, approve, events.append)

    async def answer() -> Message:
        return calling(call("double", '{"number": 1}'))

    async def take(done: ToolDone) -> None:
        taken.append(done)

    running = asyncio.create_task(loop.run(answer, take))
    await asked.wait()
    loop.stop()
    await asyncio.wait_for(running, 10)
    assert [done.outcome for done in taken] == ["stopped"]


async def test_the_end_of_the_program_ends_the_loop_and_what_runs_in_it() -> None:
    talk = Talk([calling(call("waits", '{"seconds": 20}'))])
    running = asyncio.create_task(talk.run())
    while not talk.events:
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert talk.taken == []


@pytest.mark.parametrize(
    ("policy", "answers", "allowed", "asked", "kept"),
    [
        ("ask", ["once", "once"], [True, True], 2, []),
        ("ask", ["no", "once"], [False, True], 2, []),
        ("ask", ["always"], [True, True], 1, [("double", "always")]),
        ("ask", ["never"], [False, False], 1, [("double", "never")]),
        ("always", [], [True, True], 0, []),
        ("never", [], [False, False], 0, []),
    ],
)
async def test_approval_once_always_never(
    policy: Policy, answers: list[Answer], allowed: list[bool], asked: int, kept: list[tuple[str, str]]
) -> None:
    questions: list[ToolCall] = []
    remembered: list[tuple[str, str]] = []

    async def ask(call: ToolCall) -> Answer:
        questions.append(call)
        return answers[len(questions) - 1]

    approvals = Approvals({"double": policy}, ask, lambda name, policy: remembered.append((name, policy)))
    assert [await approvals(call("double")) for _ in range(2)] == allowed
    assert (len(questions), remembered) == (asked, kept)
