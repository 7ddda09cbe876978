"""Tools in a session, without a screen: what is offered, asked, run, kept, and what the model reads."""

from pathlib import Path

import pytest

from dsv4chat.app.events import Notice
from dsv4chat.app.preferences import Preferences
from dsv4chat.app.session import ChatSession
from dsv4chat.app.tool_events import ApprovalOver, ApprovalWanted, CallChanged, ToolsSwitched
from dsv4chat.encoding import Conversation, Message, ToolCall, render
from dsv4chat.settings import Settings
from dsv4chat.store import open_history
from dsv4chat.tools import builtin_tools
from tests.support.app_parts import Parts, wait_for
from tests.support.fake_engine import Script
from tests.support.sessions import ask, ready
from tests.support.tool_calls import SUM, call

DEFINITIONS = tuple(tool.definition for tool in builtin_tools())


async def with_tools(parts: Parts) -> ChatSession:
    session = await ready(parts)
    session.tools.switch(True)
    await wait_for(lambda: session.tools.on)
    return session


async def asked(session: ChatSession) -> None:
    await wait_for(lambda: any(isinstance(event, ApprovalWanted) for event in session.events))


def notices(session: ChatSession) -> list[str]:
    return [event.sentence for event in session.events if isinstance(event, Notice)]


async def test_a_call_that_is_allowed_runs_and_its_result_goes_to_the_model(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([SUM, "There it is.</think>It is 408."]))
    session = await with_tools(parts)
    assert session.submit("What is 17 * 24?")
    await asked(session)
    assert session.busy
    session.tools.decide("once")
    await wait_for(lambda: not session.busy)
    assert [(record.role, record.content) for record in session.path] == [
        ("user", "What is 17 * 24?"),
        ("assistant", ""),
        ("tool", "408"),
        ("assistant", "It is 408."),
    ]
    first, called, result, _ = session.path
    expected = Conversation(
        (
            Message("user", first.content),
            Message("assistant", "", reasoning="I compute.", tool_calls=called.tool_calls),
            Message("tool", "408", tool_call_id=result.tool_call_id),
        ),
        DEFINITIONS,
    )
    assert parts.engine.asked[1] == parts.tokenizer.encode(render(expected, parts.text.profile)).ids
    states = [event.state for event in session.events if isinstance(event, CallChanged)]
    assert states == ["waiting", "running", "done"]
    await session.close()
    history = open_history(tmp_path).repository
    (kept,) = history.summaries()
    path = history.path(history.conversation(kept.id).active_leaf)
    assert [record.role for record in path] == ["user", "assistant", "tool", "assistant"]
    assert path[1].approvals == ("once",)
    assert history.conversation(kept.id).settings.tools == list(DEFINITIONS)
    history.close()


@pytest.mark.parametrize(
    ("answer", "result", "asked_again"),
    [
        ("once", "408", True),
        ("always", "408", False),
        ("no", "Error: the user does not allow this call", True),
        ("never", "Error: the user does not allow this call", False),
    ],
)
async def test_the_persons_word_holds_as_long_as_it_says(
    tmp_path: Path, answer: str, result: str, asked_again: bool
) -> None:
    again = SUM.replace("17", "17")
    parts = Parts(tmp_path, Script([SUM, "x</think>Well.", again, "x</think>Well."]))
    session = await with_tools(parts)
    session.submit("one")
    await asked(session)
    session.tools.decide(answer)  # type: ignore[arg-type]
    await wait_for(lambda: not session.busy)
    assert session.path[2].content == result
    session.events.clear()
    session.submit("two")
    await wait_for(lambda: not session.busy or any(isinstance(e, ApprovalWanted) for e in session.events))
    assert any(isinstance(event, ApprovalWanted) for event in session.events) == asked_again
    if asked_again:
        session.tools.decide("no")
    await wait_for(lambda: not session.busy)
    await session.close()
    history = open_history(tmp_path).repository
    assert history.approvals() == ({} if asked_again else {"calculator": answer})
    history.close()


async def test_calls_that_are_wrong_are_answered_with_an_error_and_nobody_is_asked(tmp_path: Path) -> None:
    wrong = [
        "x</think>" + call("weather", city="Rome"),
        "x</think>" + call("calculator", formula="1"),
        "x</think>" + call("calculator", expression="1 / 0"),
        "x</think>Sorry.",
    ]
    parts = Parts(tmp_path, Script(wrong))
    session = await with_tools(parts)
    await session.store.run(lambda history: history.set_approval("calculator", "always"))
    await ask(session, "try")
    results = [record.content for record in session.path if record.role == "tool"]
    assert results[0].startswith('Error: There is no tool "weather"')
    assert results[1].startswith('Error: The tool "calculator" has no parameter "formula"')
    assert results[2] == "Error: division by zero"
    assert not any(isinstance(event, ApprovalWanted) for event in session.events)
    assert session.path[-1].content == "Sorry."
    await session.close()


async def test_stopping_while_the_question_stands_ends_the_turn_and_answers_the_call(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([SUM, "x</think>Never said."]))
    session = await with_tools(parts)
    session.submit("one")
    await asked(session)
    assert session.stop()
    await wait_for(lambda: not session.busy)
    assert [record.role for record in session.path] == ["user", "assistant", "tool"]
    assert session.path[-1].content == "Error: the user stopped this"
    assert isinstance(next(e for e in reversed(session.events) if isinstance(e, ApprovalOver)), ApprovalOver)
    assert len(parts.engine.asked) == 1
    await ask(session, "two")
    assert session.path[-1].content == "Never said."
    await session.close()


async def test_an_answer_that_was_stopped_or_cut_off_runs_nothing(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([SUM], stop_reason="length"))
    session = await with_tools(parts)
    await ask(session, "one")
    assert [record.role for record in session.path] == ["user", "assistant"]
    assert session.path[-1].state == "length"
    await session.close()


async def test_rounds_are_limited_by_the_settings(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([SUM, SUM, SUM, "x</think>Enough."]))
    parts.preferences = Preferences(Settings(tools={"rounds": 2}))
    session = await with_tools(parts)
    await session.store.run(lambda history: history.set_approval("calculator", "always"))
    await ask(session, "one")
    results = [record.content for record in session.path if record.role == "tool"]
    assert results[:2] == ["408", "408"]
    assert "there were 2 rounds of calls already" in results[2]
    assert session.path[-1].content == "Enough."
    assert any("called tools 2 times" in sentence for sentence in notices(session))
    await session.close()


async def test_switching_tools_tells_what_it_costs_and_holds_for_new_conversations(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["x</think>Yes."]))
    session = await ready(parts)
    await ask(session, "one")
    said = session.path[-1]
    session.tools.switch(True)
    await wait_for(lambda: any("reads" in sentence for sentence in notices(session)))
    after = Conversation(
        (
            Message("user", "one"),
            Message("assistant", "Yes.", reasoning="x", ids=said.ids),
            Message("user", ""),
        ),
        DEFINITIONS,
    )
    whole = parts.tokenizer.encode(render(after, parts.text.profile)).ids
    # All but the token of the beginning is different with the tools in the system text.
    sentence = next(sentence for sentence in notices(session) if "reads" in sentence)
    assert f"the next turn reads {len(whole) - 1:,} tokens of the conversation again" in sentence
    assert ToolsSwitched(2) in session.events
    session.new_conversation()
    await wait_for(lambda: session.record is None)
    assert session.tools.on
    session.tools.switch(False)
    await wait_for(lambda: not session.tools.on)
    await session.close()


async def test_without_tools_a_call_is_not_run_and_that_is_told(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([SUM]))
    session = await ready(parts)
    await ask(session, "one")
    assert [record.role for record in session.path] == ["user", "assistant"]
    assert any("tools are off" in sentence for sentence in notices(session))
    await session.close()


async def test_a_tool_of_the_person_is_offered_and_a_broken_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        'def shout(text: str) -> str:\n    """Say it loud."""\n    return text.upper()\n'
    )
    parts = Parts(tmp_path / "data", Script(["x</think>" + call("shout", text="hey"), "x</think>HEY."]))
    settings = Settings(tools={"functions": ["mine.py:shout", "gone.py:f"]})
    parts.preferences = Preferences(settings, tmp_path / "settings.toml")
    session = await with_tools(parts)
    assert any("gone.py" in sentence for sentence in notices(session))
    session.submit("one")
    await asked(session)
    session.tools.decide("once")
    await wait_for(lambda: not session.busy)
    assert session.path[2].content == "HEY"
    await session.close()


async def test_quitting_while_the_question_stands_keeps_what_was_said(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([SUM]))
    session = await with_tools(parts)
    session.submit("one")
    await asked(session)
    await session.close()
    history = open_history(tmp_path).repository
    (kept,) = history.summaries()
    path = history.path(history.conversation(kept.id).active_leaf)
    assert [(record.role, record.state) for record in path] == [
        ("user", "complete"),
        ("assistant", "complete"),
    ]
    assert path[1].tool_calls == (ToolCall("call_00", "calculator", '{"expression": "17 * 24"}'),)
    history.close()
