"""Which conversation is open, what comes back after a restart, and a history that fails."""

import threading
from pathlib import Path

import pytest

from dsv4chat.app.events import ConversationShown, HistoryInMemory, Notice, PathChanged
from dsv4chat.store import Repository, open_history
from dsv4chat.turns import TurnToken
from tests.support.app_parts import Parts, wait_for
from tests.support.fake_engine import Script
from tests.support.sessions import THOUGHT, ask, ready


async def test_the_last_conversation_is_there_after_a_restart(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    session = await ready(parts)
    session.set_mode(False, "max")
    await ask(session, "Capital?")
    path = list(session.path)
    await session.close()
    again = Parts(tmp_path).session()
    await again.open_history()
    assert [message.id for message in again.path] == [message.id for message in path]
    assert (again.settings.thinking, again.settings.effort) == (False, "max")
    shown = again.events[0]
    assert isinstance(shown, ConversationShown)
    assert shown.path == tuple(again.path)
    await again.close()


@pytest.mark.parametrize("end", ["left", "crashed"])
@pytest.mark.parametrize("open_last", ["the first", "a new one"])
async def test_what_was_open_at_the_end_is_open_again_and_not_what_was_written_to_last(
    tmp_path: Path, open_last: str, end: str
) -> None:
    session = await ready(Parts(tmp_path, Script(["a</think>A", "b</think>B"])))
    await ask(session, "first")
    first = session.record
    assert first is not None
    session.new_conversation()
    await wait_for(lambda: session.record is None)
    await ask(session, "second")
    if open_last == "the first":
        session.open_conversation(first.id)
        await wait_for(lambda: session.record is not None and session.record.id == first.id)
    else:
        session.new_conversation()
        await wait_for(lambda: session.record is None)
    if end == "left":
        await session.close()
    else:
        await session.store.run(lambda history: None)  # all that was asked for before is written
    again = Parts(tmp_path).session()
    await again.open_history()
    assert [message.content for message in again.path] == (["first", "A"] if open_last == "the first" else [])
    await again.close()
    await session.close()


async def test_of_two_programs_the_one_left_last_says_what_is_open_next_time(tmp_path: Path) -> None:
    one = await ready(Parts(tmp_path, Script(["a</think>A"])))
    await ask(one, "first")
    other = await ready(Parts(tmp_path, Script(["b</think>B"])))
    other.new_conversation()
    await wait_for(lambda: other.record is None)
    await ask(other, "second")
    await other.close()
    await one.close()
    again = Parts(tmp_path).session()
    await again.open_history()
    assert [message.content for message in again.path] == ["first", "A"]
    await again.close()


async def test_leaving_before_the_history_is_open_changes_nothing(tmp_path: Path) -> None:
    session = await ready(Parts(tmp_path, Script(["a</think>A"])))
    await ask(session, "first")
    await session.close()
    await Parts(tmp_path).session().close()
    again = Parts(tmp_path).session()
    await again.open_history()
    assert [message.content for message in again.path] == ["first", "A"]
    await again.close()


async def test_new_and_old_conversations_are_switched_between(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["a</think>A", "b</think>B", "c</think>C"]))
    session = await ready(parts)
    await ask(session, "first")
    first = session.record
    assert first is not None
    session.new_conversation()
    await wait_for(lambda: session.record is None)
    assert session.path == []
    await ask(session, "second")
    assert [summary.title for summary in await session.summaries()] == ["second", "first"]
    session.open_conversation(first.id)
    await wait_for(lambda: session.record is not None and session.record.id == first.id)
    await ask(session, "third")
    assert [message.content for message in session.path] == ["first", "A", "third", "C"]
    assert parts.engine.conversations == [str(first.id), str(first.id + 1), str(first.id)]
    await session.close()


async def test_leaving_a_conversation_stops_its_answer_and_keeps_it(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    parts.allow = 15
    session = await ready(parts)
    session.submit("Capital?")
    await wait_for(lambda: sum(isinstance(event, TurnToken) for event in session.events) == 15)
    session.new_conversation()
    await wait_for(lambda: session.record is None)
    (summary,) = await session.summaries()
    answer = (
        await session.store.run(lambda history: history.path(history.conversation(summary.id).active_leaf))
    )[-1]
    assert answer.state == "stopped"
    await session.close()


async def test_nothing_is_sent_between_the_end_of_a_turn_and_another_conversation(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["a</think>A", THOUGHT, "c</think>C"]))
    session = await ready(parts)
    await ask(session, "first")
    session.new_conversation()
    await wait_for(lambda: session.record is None)
    parts.engine.let(5)
    session.submit("second")
    await wait_for(lambda: len(parts.engine.asked) == 2)
    held = threading.Event()
    session.store.submit(lambda _: held.wait())  # a slow disk: the other conversation is not read yet
    session.open_conversation(1)
    assert not session.can_send
    await wait_for(lambda: not session.busy)
    assert session.record is not None
    assert session.record.id == 2
    assert not session.can_send
    assert not session.submit("third")
    assert not session.tree.regenerate()
    assert Notice("Not while another conversation is being opened.", "warning") in session.events
    held.set()
    parts.engine.let(None)
    await wait_for(lambda: session.can_send)
    await ask(session, "third")
    assert [message.content for message in session.path] == ["first", "A", "third", "C"]
    await session.close()


async def test_of_two_conversations_asked_for_the_last_one_is_shown(tmp_path: Path) -> None:
    session = await ready(Parts(tmp_path, Script(["a</think>A", "b</think>B"])))
    await ask(session, "first")
    session.new_conversation()
    await wait_for(lambda: session.can_send)
    await ask(session, "second")
    session.open_conversation(1)
    session.new_conversation()
    await wait_for(lambda: session.can_send)
    assert (session.record, session.path) == (None, [])
    await session.close()


async def test_without_a_place_for_the_history_the_chat_works_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    parts = Parts(tmp_path / "file" / "data", Script([THOUGHT]))
    session = await ready(parts)
    told = [event for event in session.events if isinstance(event, HistoryInMemory)]
    assert len(told) == 1
    await ask(session, "Capital?")
    assert session.path[-1].content == "Paris."
    assert len(await session.summaries()) == 1
    await session.close()


async def test_when_the_disk_fills_up_the_chat_works_and_says_so(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT, "Still</think>here."]))
    session = await ready(parts)
    await ask(session, "Capital?")

    def fill(history: Repository) -> None:
        pages = history.connection.execute("PRAGMA page_count").fetchone()[0]
        history.connection.execute(f"PRAGMA max_page_count = {pages}")

    await session.store.run(fill)
    session.events.clear()
    await ask(session, "long " * 20_000)
    assert session.path[-1].content == "here."
    assert [type(event) for event in session.events].count(HistoryInMemory) == 1
    path = await session.store.run(lambda history: history.path(session.path[-1].id))
    assert [message.content[:8] for message in path] == ["Capital?", "Paris.", "long lon", "here."]
    await session.close()


async def test_two_programs_go_on_with_the_same_conversation_and_nothing_is_lost(tmp_path: Path) -> None:
    first = Parts(tmp_path, Script(["a</think>A", "b</think>B"]))
    one = await ready(first)
    await ask(one, "start")
    second = Parts(tmp_path, Script(["c</think>C"]))
    other = await ready(second)
    assert [message.content for message in other.path] == ["start", "A"]
    first.engine.let(3)
    one.submit("from one")
    await wait_for(lambda: len(first.engine.asked) == 2)
    await ask(other, "from the other")
    first.engine.let(None)
    await wait_for(lambda: not one.busy)
    assert [message.content for message in one.path] == ["start", "A", "from one", "B"]
    assert [message.content for message in other.path] == ["start", "A", "from the other", "C"]
    await one.close()
    await other.close()
    history = open_history(tmp_path).repository
    assert history.siblings(one.path[2].id) == sorted([one.path[2].id, other.path[2].id])
    assert {history.message(session.path[3].id).content for session in (one, other)} == {"B", "C"}
    history.close()


async def test_what_another_program_writes_here_is_waited_for_and_then_read(tmp_path: Path) -> None:
    first = Parts(tmp_path, Script(["a</think>A", "b</think>The whole of it."]))
    one = await ready(first)
    await ask(one, "start")
    first.engine.let(3)
    one.submit("go on")
    await wait_for(lambda: len(first.engine.asked) == 2)
    second = Parts(tmp_path, Script(["c</think>C"]))
    other = await ready(second)
    assert other.path[-1].state == "writing"
    assert not other.can_send
    assert not other.submit("too early")
    assert not other.tree.regenerate()
    await other.look_after()
    assert other.path[-1].state == "writing"
    first.engine.let(None)
    await wait_for(lambda: not one.busy)
    await other.look_after()
    assert other.path[-1].content == "The whole of it."
    assert isinstance(other.events[-1], PathChanged)
    await ask(other, "and now?")
    assert "The whole of it." in second.tokenizer.decode(second.engine.asked[-1])
    await one.close()
    await other.close()


async def test_an_answer_of_a_program_that_died_is_not_waited_for(tmp_path: Path) -> None:
    first = Parts(tmp_path, Script(["a</think>A longer answer."]))
    one = await ready(first)
    first.engine.let(3)
    one.submit("start")
    await wait_for(lambda: len(first.engine.asked) == 1)
    other = await ready(Parts(tmp_path, Script(["c</think>C"])))
    assert not other.can_send
    one.store._repository.instance.close()  # type: ignore[union-attr]  # its lock goes with a program that dies
    await other.look_after()
    assert other.path[-1].state == "interrupted"
    assert other.can_send
    first.engine.let(None)
    await one.close()
    await other.close()
