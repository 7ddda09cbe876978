"""The tree of messages without a screen: edit, answer again, continue, other branches, delete, undo."""

import asyncio
from pathlib import Path

from dsv4chat.app.events import AnswerResumed, Notice, PathChanged, TurnAdded
from dsv4chat.app.session import ChatSession
from dsv4chat.encoding import Message
from dsv4chat.store import open_history
from dsv4chat.turns import TurnToken
from tests.support.app_parts import Parts, wait_for
from tests.support.fake_engine import Script, written_out
from tests.support.sessions import THOUGHT, ask, prompt_ids, ready


async def settled(session: ChatSession) -> None:
    await asyncio.sleep(0)
    await wait_for(lambda: not session.busy and not session._tasks)


def said(session: ChatSession) -> list[str]:
    return [record.content for record in session.path]


def told(session: ChatSession) -> list[str]:
    return [event.sentence for event in session.events if isinstance(event, Notice)]


async def two_turns(parts: Parts) -> ChatSession:
    session = await ready(parts)
    await ask(session, "first")
    await ask(session, "second")
    session.events.clear()
    return session


async def test_an_edited_message_becomes_a_branch_beside_the_first_one(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["a</think>A", "b</think>B", "c</think>C"]))
    session = await two_turns(parts)
    old = session.path[2].id
    assert session.tree.edit(old, "other")
    await settled(session)
    assert said(session) == ["first", "A", "other", "C"]
    assert parts.engine.asked[2] == prompt_ids(
        parts,
        Message("user", "first"),
        Message("assistant", "A", reasoning="a", ids=tuple(written_out(parts.tokenizer, "a</think>A"))),
        Message("user", "other"),
    )
    new = session.path[2].id
    assert session.branches[new].ids == (old, new)
    assert session.branches[new].index == 1
    kinds = [type(event) for event in session.events]
    assert kinds[:2] == [PathChanged, TurnAdded]
    await session.close()
    history = open_history(tmp_path).repository
    assert history.siblings(old) == [old, new]
    history.close()


async def test_the_first_message_can_be_edited_too(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["a</think>A", "b</think>B"]))
    session = await ready(parts)
    await ask(session, "first")
    assert session.tree.edit(session.path[0].id, "better")
    await settled(session)
    assert said(session) == ["better", "B"]
    assert len(session.branches[session.path[0].id].ids) == 2
    await session.close()


async def test_another_answer_stands_beside_the_one_there_and_one_goes_back_and_forth(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["a</think>A", "b</think>B", "c</think>C"]))
    session = await ready(parts)
    await ask(session, "first")
    for _ in range(2):
        assert session.tree.regenerate()
        await settled(session)
    assert said(session) == ["first", "C"]
    assert parts.engine.asked[0] == parts.engine.asked[1] == parts.engine.asked[2]
    seen = []
    for step in (-1, -1, 1, 1):
        session.events.clear()
        assert session.tree.switch(session.path[1].id, step)
        await settled(session)
        seen.append(session.path[1].content)
        changed = session.events[-1]
        assert isinstance(changed, PathChanged)
        assert changed.seen == session.path[1].id
    assert seen == ["B", "A", "B", "C"]
    assert not session.tree.switch(session.path[1].id, 1)
    await session.close()
    later = await ready(Parts(tmp_path))
    assert said(later) == ["first", "C"]
    assert later.branches[later.path[1].id].index == 2
    await later.close()


async def test_the_branch_shown_is_the_one_that_is_there_after_a_restart(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["a</think>A", "b</think>B"]))
    session = await ready(parts)
    await ask(session, "first")
    session.tree.regenerate()
    await settled(session)
    session.tree.switch(session.path[1].id, -1)
    await settled(session)
    await session.close()
    later = await ready(Parts(tmp_path))
    assert said(later) == ["first", "A"]
    await later.close()


async def test_an_answer_in_the_middle_is_written_again_without_what_followed(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["a</think>A", "b</think>B", "c</think>C"]))
    session = await two_turns(parts)
    middle = session.path[1].id
    assert session.tree.regenerate(middle)
    await settled(session)
    assert said(session) == ["first", "C"]
    session.tree.switch(session.path[1].id, -1)
    await settled(session)
    assert said(session) == ["first", "A", "second", "B"]
    await session.close()


async def test_a_stopped_answer_goes_on_and_keeps_its_ids(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT, " And more."]))
    parts.allow = 16
    session = await ready(parts)
    session.submit("Capital?")
    await wait_for(lambda: sum(isinstance(event, TurnToken) for event in session.events) == 16)
    session.stop()
    await settled(session)
    before = session.path[-1]
    assert before.state == "stopped"
    parts.engine.let(None)
    session.events.clear()
    assert session.tree.resume()
    await settled(session)
    resumed = session.events[0]
    assert isinstance(resumed, AnswerResumed)
    assert resumed.answer.content == before.content
    after = session.path[-1]
    assert after.id == before.id
    assert after.ids[:16] == before.ids
    assert after.ids[16:] == tuple(written_out(parts.tokenizer, " And more."))
    assert after.content == before.content + " And more."
    assert after.reasoning == before.reasoning
    assert after.state == "complete"
    asked = parts.engine.asked
    assert asked[1] == [*asked[0], *before.ids]
    assert after.generation is not None
    assert after.generation.tokens == len(after.ids)
    await session.close()
    history = open_history(tmp_path).repository
    kept = history.message(after.id)
    assert (kept.ids, kept.content, kept.state) == (after.ids, after.content, "complete")
    assert len(history.figures(after.id)) == len(after.ids)
    history.close()


async def test_an_answer_stopped_in_its_thinking_goes_on_thinking(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT, "on.</think>Paris."]))
    parts.allow = 4
    session = await ready(parts)
    session.submit("Capital?")
    await wait_for(lambda: sum(isinstance(event, TurnToken) for event in session.events) == 4)
    session.stop()
    await settled(session)
    before = session.path[-1]
    assert before.content == ""
    assert before.reasoning
    parts.engine.let(None)
    session.tree.resume()
    await settled(session)
    after = session.path[-1]
    assert after.reasoning == before.reasoning + "on."
    assert after.content == "Paris."
    assert after.generation is not None
    assert after.generation.reasoning_tokens == 4 + len(written_out(parts.tokenizer, "on.</think>"))
    await session.close()


async def test_a_finished_answer_is_not_continued_and_it_is_said_why(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    session = await ready(parts)
    await ask(session, "Capital?")
    assert not session.tree.resume()
    assert "stopped or cut off" in told(session)[-1]
    assert len(parts.engine.asked) == 1
    await session.close()


async def test_a_deleted_message_goes_with_what_follows_and_comes_back(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["a</think>A", "b</think>B"]))
    session = await two_turns(parts)
    path = [record.id for record in session.path]
    assert session.tree.delete(session.path[2].id)
    await settled(session)
    assert said(session) == ["first", "A"]
    other = open_history(tmp_path).repository
    assert [found.message for found in other.search("second")] == []
    other.close()
    assert session.tree.undo()
    await settled(session)
    assert [record.id for record in session.path] == path
    assert not session.tree.undo()
    assert "nothing to bring back" in told(session)[-1]
    await session.close()
    later = await ready(Parts(tmp_path))
    assert said(later) == ["first", "A", "second", "B"]
    await later.close()


async def test_deleting_one_branch_shows_the_one_beside_it(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["a</think>A", "b</think>B"]))
    session = await ready(parts)
    await ask(session, "first")
    session.tree.regenerate()
    await settled(session)
    session.tree.delete(session.path[1].id)
    await settled(session)
    assert said(session) == ["first", "A"]
    assert session.branches == {}
    session.tree.undo()
    await settled(session)
    assert said(session) == ["first", "B"]
    await session.close()


async def test_after_deleting_everything_one_can_begin_again(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["a</think>A", "b</think>B"]))
    session = await ready(parts)
    await ask(session, "first")
    session.tree.delete(session.path[0].id)
    await settled(session)
    assert said(session) == []
    await ask(session, "again")
    assert said(session) == ["again", "B"]
    assert parts.engine.asked[1] == prompt_ids(parts, Message("user", "again"))
    await session.close()


async def test_nothing_of_this_happens_while_an_answer_is_written(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["a</think>A", "b</think>B"]))
    session = await ready(parts)
    await ask(session, "first")
    parts.engine.let(1)
    session.submit("second")
    await wait_for(lambda: len(parts.engine.asked) == 2)
    first = session.path[0].id
    assert not session.tree.edit(first, "x")
    assert not session.tree.regenerate(session.path[1].id)
    assert not session.tree.delete(first)
    assert not session.tree.undo()
    assert all("Esc stops it" in sentence for sentence in told(session))
    parts.engine.let(None)
    await settled(session)
    assert said(session) == ["first", "A", "second", "B"]
    await session.close()


async def test_a_message_on_another_branch_is_shown_when_it_is_opened(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["a</think>A", "b</think>B"]))
    session = await ready(parts)
    await ask(session, "first")
    old = session.path[1].id
    session.tree.regenerate()
    await settled(session)
    assert session.record is not None
    session.open_conversation(session.record.id, old)
    await settled(session)
    assert said(session) == ["first", "A"]
    await session.close()
