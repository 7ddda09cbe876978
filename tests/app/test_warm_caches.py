"""When conversations' caches are saved and brought back: idle, leaving, opening, a new engine, deleting."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from safetensors.numpy import save_file

from dsv4chat.app.assembly import build_session
from dsv4chat.app.events import CachesMeasured, HistoryInMemory, Notice
from dsv4chat.app.options import ChatOptions
from dsv4chat.app.session import ChatSession
from dsv4chat.app.warm_caches import IDLE_SECONDS
from dsv4chat.cli import main
from dsv4chat.engine_process import EngineFailed, Hang
from dsv4chat.runtime.protocol_cache import FORMAT_VERSION, SUFFIX, SavedBranch, metadata
from dsv4chat.runtime.protocol_conversations import ConversationCache
from tests.support.app_parts import Parts, Ticks, wait_for
from tests.support.fake_engine import Script
from tests.support.sessions import THOUGHT, ask, ready


def saving(folder: Path, answers: int = 3) -> Parts:
    parts = Parts(folder, Script([THOUGHT] * answers), clock=Ticks())
    parts.load = msgspec.structs.replace(parts.load, cache_folder=str(folder / "caches"))
    return parts


async def idle(session: ChatSession, parts: Parts, seconds: float) -> None:
    """Let time pass, and the session look after its engine."""
    assert isinstance(parts.clock, Ticks)
    parts.clock.now += seconds
    await session.look_after()
    await wait_for(lambda: not session._tasks)


async def test_a_cache_is_saved_when_nothing_was_asked_for_a_while(tmp_path: Path) -> None:
    parts = saving(tmp_path)
    session = await ready(parts)
    await ask(session, "Capital?")
    await idle(session, parts, IDLE_SECONDS - 0.1)
    assert parts.engine.caches.saved == []
    await idle(session, parts, 0.2)
    assert parts.engine.caches.saved == ["1"]
    await idle(session, parts, 100)
    assert parts.engine.caches.saved == ["1"]  # nothing new
    await ask(session, "And now?")
    await idle(session, parts, IDLE_SECONDS)
    assert parts.engine.caches.saved == ["1", "1"]
    await session.close()
    assert parts.engine.caches.saved == ["1", "1"]


async def test_it_is_never_saved_during_a_turn(tmp_path: Path) -> None:
    parts = saving(tmp_path)
    session = await ready(parts)
    await ask(session, "Capital?")
    parts.engine.let(0)
    session.submit("And now?")
    await wait_for(lambda: len(parts.engine.asked) == 2)
    assert isinstance(parts.clock, Ticks)
    parts.clock.now += 100
    await session.look_after()
    assert parts.engine.caches.saved == []
    parts.engine.let(None)
    await wait_for(lambda: not session.busy)
    await session.close()


@pytest.mark.parametrize("ended", [True, False])
async def test_leaving_saves_what_is_not_saved_yet(tmp_path: Path, ended: bool) -> None:
    parts = saving(tmp_path)
    parts.allow = None if ended else 5
    session = await ready(parts)
    session.submit("Capital?")
    await wait_for(lambda: not session.busy if ended else parts.engine.asked)
    await session.close()
    assert parts.engine.caches.saved == ["1"]


async def test_leaving_in_the_middle_of_a_save_waits_for_it(tmp_path: Path) -> None:
    parts = saving(tmp_path)
    session = await ready(parts)
    await ask(session, "Capital?")
    caches = parts.engine.caches
    caches.slow = True
    assert isinstance(parts.clock, Ticks)
    parts.clock.now += IDLE_SECONDS
    await session.look_after()
    await wait_for(lambda: caches.saved == ["1"])
    leaving = asyncio.create_task(session.close())
    await wait_for(lambda: caches.saved == ["1", "1"])
    assert not parts.engine.closed
    caches.slow = False
    await leaving
    assert parts.engine.closed


async def test_an_engine_that_hangs_is_not_waited_for_when_leaving(tmp_path: Path) -> None:
    parts = saving(tmp_path)
    session = await ready(parts)
    await ask(session, "Capital?")
    parts.engine.stalled = Hang(answers=False, seconds=9.0)
    await session.close()
    assert parts.engine.caches.saved == []


async def test_the_last_conversation_is_brought_back_by_a_new_engine_and_after_a_restart(
    tmp_path: Path,
) -> None:
    parts = saving(tmp_path)
    session = await ready(parts)
    await wait_for(lambda: not session._tasks)
    assert parts.engine.caches.resumed == []  # a new conversation has nothing
    await ask(session, "Capital?")
    parts.engine.die()
    await session.look_after()
    await wait_for(lambda: session.link.state == "down")
    session.start_engine()
    await wait_for(lambda: parts.engine.caches.resumed == ["1"])
    await session.close()
    again = saving(tmp_path)
    later = await ready(again)
    await wait_for(lambda: again.engine.caches.resumed == ["1"])
    await later.close()


async def test_another_conversation_is_brought_back_when_it_is_opened(tmp_path: Path) -> None:
    parts = saving(tmp_path)
    session = await ready(parts)
    await ask(session, "Capital?")
    session.new_conversation()
    await wait_for(lambda: session.record is None)
    await ask(session, "Another")
    session.open_conversation(1)
    await wait_for(lambda: parts.engine.caches.resumed == ["1"])
    await session.close()
    assert sorted(parts.engine.caches.saved) == ["1", "2"]


async def test_a_conversation_that_is_brought_back_is_still_warm(tmp_path: Path) -> None:
    parts = saving(tmp_path)
    session = await ready(parts)
    await ask(session, "Capital?")
    session.warm.deleted(1)
    await idle(session, parts, IDLE_SECONDS)
    assert parts.engine.caches.saved == []  # what is deleted is not written
    session.warm.restored()
    await idle(session, parts, IDLE_SECONDS)
    assert (parts.engine.caches.saved, parts.engine.dropped) == (["1"], [])
    await session.close()
    assert parts.engine.dropped == []


async def test_a_deletion_is_final_with_the_next_one_and_when_the_app_is_left(tmp_path: Path) -> None:
    parts = saving(tmp_path)
    session = await ready(parts)
    await ask(session, "Capital?")
    session.warm.deleted(1)
    assert parts.engine.dropped == []
    session.new_conversation()
    await wait_for(lambda: session.record is None)
    await ask(session, "Another")
    session.warm.deleted(2)
    assert parts.engine.dropped == ["1"]
    await session.close()
    assert (parts.engine.dropped, parts.engine.caches.saved) == (["1", "2"], [])


async def test_a_deletion_without_an_engine_reaches_the_next_one(tmp_path: Path) -> None:
    parts = saving(tmp_path)
    session = await ready(parts)
    await ask(session, "Capital?")
    parts.engine.die()
    await session.look_after()
    await wait_for(lambda: session.link.state == "down")
    session.warm.deleted(1)
    session.warm.deleted(2)
    session.start_engine()
    await wait_for(lambda: parts.engine.dropped == ["1"])
    await session.close()
    assert parts.engine.dropped == ["1", "2"]


async def test_files_of_conversations_that_are_gone_are_removed(tmp_path: Path) -> None:
    """Deleted by another program, or lost with a damaged history; of others nothing is touched."""
    parts = saving(tmp_path)
    session = await ready(parts)
    await ask(session, "Capital?")
    files = {owner: saved_file(tmp_path / "caches", owner) for owner in ("1", "7", "default")}
    (tmp_path / "caches" / "a" / "b" / f"unreadable{SUFFIX}").write_bytes(b"?")
    await idle(session, parts, IDLE_SECONDS)
    await idle(session, parts, 1)  # one thing at a time: measured, saved, cleaned
    await idle(session, parts, 1)
    assert {owner for owner, path in files.items() if path.exists()} == {"1", "default"}
    assert (tmp_path / "caches" / "a" / "b" / f"unreadable{SUFFIX}").exists()
    await session.close()


async def test_files_of_what_can_still_be_brought_back_stay(tmp_path: Path) -> None:
    parts = saving(tmp_path)
    session = await ready(parts)
    await ask(session, "Capital?")
    path = saved_file(tmp_path / "caches", "1")
    session.new_conversation()
    await session.store.run(lambda history: history.delete(1))
    session.warm.deleted(1)
    for _ in range(3):
        await idle(session, parts, IDLE_SECONDS)
    assert path.exists()
    await session.close()


async def test_after_a_damaged_history_what_came_back_is_warm_and_the_rest_is_dropped(tmp_path: Path) -> None:
    parts = saving(tmp_path)
    session = await ready(parts)
    await ask(session, "Capital?")
    await session.close()
    path = tmp_path / "history.db"
    path.write_bytes(bytes(4096) + path.read_bytes()[4096:])
    files = {owner: saved_file(tmp_path / "caches", owner) for owner in ("1", "2")}
    again = saving(tmp_path)
    later = await ready(again)
    told = [event.sentence for event in later.events if isinstance(event, Notice)]
    assert ["2 messages in 1 conversation were brought back" in sentence for sentence in told] == [True]
    await wait_for(lambda: again.engine.caches.resumed == ["1"])
    for _ in range(3):
        await idle(later, again, IDLE_SECONDS)
    assert {owner for owner, saved in files.items() if saved.exists()} == {"1"}
    await ask(later, "And now?")
    assert [message.content for message in later.path] == ["Capital?", "Paris.", "And now?", "Paris."]
    await later.close()


async def test_a_history_in_memory_says_nothing_about_files(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    parts = saving(tmp_path)
    parts.folder = tmp_path / "file" / "data"
    session = await ready(parts)
    path = saved_file(tmp_path / "caches", "7")
    for _ in range(3):
        await idle(session, parts, IDLE_SECONDS)
    assert path.exists()
    await session.close()


def saved_file(root: Path, conversation: str) -> Path:
    """A saved cache of no rows, as an engine's folder of any model has it."""
    head = SavedBranch(
        version=FORMAT_VERSION,
        conversation=conversation,
        fingerprint="f",
        model="demo",
        name="n",
        parent="",
        start=0,
        ids=[1, 2, 3],
        chunks=[3],
        marks=[],
        rows="",
    )
    path = root / "a" / "b" / f"{conversation}{SUFFIX}"
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({}, path, metadata(head))
    return path


async def test_what_could_not_be_used_is_told(tmp_path: Path) -> None:
    parts = saving(tmp_path)
    session = await ready(parts)
    await ask(session, "Capital?")
    parts.engine.caches.notices = ["The saved cache x is damaged; its tokens are fed again."]
    await session.warm.opened()
    assert Notice("The saved cache x is damaged; its tokens are fed again.", "warning") in session.events
    await session.close()


async def test_a_save_that_fails_is_told_once_and_nothing_else_happens(tmp_path: Path) -> None:
    parts = saving(tmp_path)
    session = await ready(parts)
    parts.engine.caches.fails = EngineFailed("SavedCacheError", "The disk is full.")
    for _ in range(2):
        await ask(session, "Capital?")
        await idle(session, parts, IDLE_SECONDS)
    told = [event for event in session.events if isinstance(event, Notice)]
    assert told == [Notice("The cache of a conversation could not be saved: The disk is full.", "warning")]
    await session.close()


async def test_without_a_folder_nothing_is_saved_but_figures_are_shown(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]), clock=Ticks())
    session = await ready(parts)
    figures = ConversationCache(
        conversation="1", tokens=20, branches=1, live_bytes=5000, memory_bytes=100, disk_bytes=0
    )
    parts.engine.caches.figures = [figures]
    await ask(session, "Capital?")
    await idle(session, parts, 1)
    assert CachesMeasured((figures,)) in session.events
    assert session.warm.bytes_of_open([figures]) == 5100
    await idle(session, parts, 100)
    await session.close()
    assert parts.engine.caches.saved == []


async def test_a_message_starts_an_engine_that_is_gone_and_is_answered(tmp_path: Path) -> None:
    parts = saving(tmp_path)
    session = await ready(parts)
    parts.engine.die()
    await session.look_after()
    await wait_for(lambda: session.link.state == "down")
    assert not session.submit("Capital?")
    await wait_for(lambda: session.can_send)
    assert len(parts.engines) == 2
    await ask(session, "Capital?")
    assert session.path[-1].content == "Paris."
    await session.close()


def test_flag_and_settings_say_how_much_memory_caches_may_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSV4CHAT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DSV4CHAT_ENGINE__CACHE_MEMORY", "1.5")
    monkeypatch.setenv("DSV4CHAT_ENGINE__CACHE_DISK", "0.25")
    load = build_session(ChatOptions()).link._load
    assert (load.cache_memory, load.cache_disk) == (1_500_000_000, 250_000_000)
    assert load.cache_folder == str(tmp_path / "home" / "cache" / "conversations")
    assert build_session(ChatOptions(cache_memory=0.0)).link._load.cache_memory == 0
    monkeypatch.setenv("DSV4CHAT_ENGINE__CACHE_DISK", "0")
    assert build_session(ChatOptions()).link.saves is None
    (tmp_path / "file").touch()
    monkeypatch.setenv("DSV4CHAT_HOME", str(tmp_path / "file"))
    session = build_session(ChatOptions())
    assert session.link.saves is None
    (told,) = session.events
    assert isinstance(told, HistoryInMemory)
    assert "DSV4CHAT_HOME" in told.sentence


def test_the_command_line_takes_the_flag_and_refuses_what_is_no_size(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []
    monkeypatch.setattr("dsv4chat.app.run", lambda **options: given.append(options["cache_memory"]) or 0)
    assert CliRunner().invoke(main, ["--cache-memory", "0.5"]).exit_code == 0
    assert given == [0.5]
    for wrong in ("-1", "nan", "inf", "much"):
        assert CliRunner().invoke(main, ["--cache-memory", wrong]).exit_code == 2
