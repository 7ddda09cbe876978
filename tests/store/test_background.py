"""The history off the main thread: order kept, a failing disk survived, two programs and a killed one."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from dsv4chat.store import (
    BackgroundStore,
    ConversationSettings,
    GenerationRecord,
    Repository,
    StoreError,
    TokenFigures,
    open_history,
)
from dsv4chat.store.salvage import salvage

MADE = GenerationRecord(model="demo", tokenizer="abc", profile="preview", layers=2)


def tokens(*ids: int) -> TokenFigures:
    made = TokenFigures()
    for number in ids:
        made.add(number, "answer", 1.0, -1.0, [1.0, 2.0])
    return made


async def test_work_runs_in_order_in_one_other_thread(tmp_path: Path) -> None:
    store = BackgroundStore(tmp_path)
    await store.open()
    seen: list[tuple[int, int]] = []
    waiting = [store.submit(lambda _, n=n: seen.append((n, threading.get_ident()))) for n in range(20)]
    waiting[-1].result()
    store.close()
    assert [number for number, _ in seen] == list(range(20))
    assert len({thread for _, thread in seen} | {threading.get_ident()}) == 2


async def test_closing_writes_what_was_asked_for_and_refuses_more(tmp_path: Path) -> None:
    store = BackgroundStore(tmp_path)
    await store.open()
    talk = await store.run(lambda history: history.create_conversation(ConversationSettings()))
    store.submit(lambda history: history.add_message(talk.id, None, "user", "last words"))
    store.close()
    store.close()
    with pytest.raises(StoreError):
        await store.run(lambda history: history.summaries())
    reopened = open_history(tmp_path).repository
    assert [line.preview for line in reopened.summaries()] == ["last words"]
    reopened.close()


async def test_when_the_disk_is_full_the_conversation_goes_on_in_memory(tmp_path: Path) -> None:
    sentences: list[str] = []
    store = BackgroundStore(tmp_path, sentences.append)
    await store.open()
    talk = await store.run(lambda history: history.create_conversation(ConversationSettings()))
    store.current = talk.id
    user = await store.run(lambda history: history.add_message(talk.id, None, "user", "before"))
    answer = await store.run(
        lambda history: history.begin_answer(talk.id, user.id, MADE, thinking=False, effort=None)
    )
    await store.run(lambda history: history.save_progress(answer.id, "so far", None, 0, tokens(4, 5)))

    def fill(history: Repository) -> None:
        pages = history.connection.execute("PRAGMA page_count").fetchone()[0]
        history.connection.execute(f"PRAGMA max_page_count = {pages}")

    await store.run(fill)
    long = "and much more " * 50_000
    await store.run(lambda history: history.save_progress(answer.id, long, None, 2, tokens(6)))
    kept = await store.run(lambda history: history.message(answer.id))
    assert kept.content == long
    assert kept.ids == (4, 5, 6)
    assert not store.persistent
    assert len(sentences) == 1
    assert "full" in sentences[0]
    assert "lost when you quit" in sentences[0]
    path = await store.run(lambda history: history.path(answer.id))
    assert [message.content for message in path] == ["before", long]
    store.close()


def test_two_programs_write_to_the_same_history_and_leave_each_others_answers_alone(tmp_path: Path) -> None:
    one = open_history(tmp_path).repository
    talk = one.create_conversation(ConversationSettings()).id
    user = one.add_message(talk, None, "user", "q").id
    answer = one.begin_answer(talk, user, MADE, thinking=False, effort=None).id
    other = open_history(tmp_path).repository
    assert other.message(answer).state == "writing"
    elsewhere = other.create_conversation(ConversationSettings()).id
    for number in range(30):
        one.save_progress(answer, "x" * number, None, number, tokens(number))
        other.add_message(elsewhere, None, "user", str(number))
    one.finish_answer(answer, "complete", "done", None, 30, tokens(), MADE)
    assert other.message(answer).content == "done"
    assert len(one.summaries()) == 2
    other.close()
    one.close()


def test_closing_marks_the_own_unfinished_answer_as_interrupted(tmp_path: Path) -> None:
    repository = open_history(tmp_path).repository
    talk = repository.create_conversation(ConversationSettings()).id
    user = repository.add_message(talk, None, "user", "q").id
    answer = repository.begin_answer(talk, user, MADE, thinking=False, effort=None).id
    repository.save_progress(answer, "half", None, 0, tokens(1))
    repository.close()
    reopened = open_history(tmp_path).repository
    assert reopened.message(answer).state == "interrupted"
    assert list((tmp_path / "running").iterdir()) == [tmp_path / "running" / f"{reopened.instance.name}.lock"]
    reopened.close()


_WRITER = """
import sys, time
from pathlib import Path
from dsv4chat.store import ConversationSettings, GenerationRecord, TokenFigures, open_history
history = open_history(Path(sys.argv[1])).repository
talk = history.create_conversation(ConversationSettings()).id
user = history.add_message(talk, None, "user", "What is the capital of France?").id
made = GenerationRecord("demo", "abc", "preview", 2)
answer = history.begin_answer(talk, user, made, thinking=True, effort=None).id
for number in range(10_000):
    new = TokenFigures()
    new.add(number, "answer", 1.0, -1.0, [1.0, 2.0])
    history.save_progress(answer, "Paris " * (number + 1), "Easy.", number, new)
    if number == 20:
        print(answer, flush=True)
"""


def test_after_kill_9_the_question_and_the_partial_answer_are_there_and_marked(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    answer = int(process.stdout.readline())
    running = open_history(tmp_path).repository
    assert running.message(answer).state == "writing"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    running.close()
    history = open_history(tmp_path).repository
    talk = history.latest_conversation()
    assert talk is not None
    question, partial = history.path(talk.active_leaf)
    assert question.content == "What is the capital of France?"
    assert partial.state == "interrupted"
    assert len(partial.ids) >= 20
    assert partial.content == "Paris " * len(partial.ids)
    assert partial.reasoning == "Easy."
    assert history.figures(answer).ids == list(partial.ids)
    assert [found.message for found in history.search("paris")] == [answer]
    history.close()


_FILLING = """
import asyncio, json, resource, sys
from pathlib import Path
from dsv4chat.store import BackgroundStore, ConversationSettings

async def main():
    sentences = []
    store = BackgroundStore(Path(sys.argv[1]), sentences.append)
    await store.open()
    talk = await store.run(lambda history: history.create_conversation(ConversationSettings()))
    store.current = talk.id
    last = await store.run(lambda history: history.add_message(talk.id, None, "user", "before"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    for number in range(40):
        text = f"{number} " + "much more " * 20_000
        parent = last.id
        last = await store.run(lambda history: history.add_message(talk.id, parent, "user", text))
    path = await store.run(lambda history: history.path(last.id))
    print(json.dumps([store.persistent, sentences, [message.content[:6] for message in path]]))
    store.close()

asyncio.run(main())
"""


def test_where_no_file_may_grow_the_whole_conversation_goes_on_and_what_was_written_stays(
    tmp_path: Path,
) -> None:
    run = subprocess.run(
        [sys.executable, "-c", _FILLING, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    persistent, sentences, path = json.loads(run.stdout)
    assert not persistent
    assert len(sentences) == 1
    assert "lost when you quit" in sentences[0]
    assert path == ["before", *(f"{number} much more "[:6] for number in range(40))]
    history = open_history(tmp_path).repository
    talk = history.latest_conversation()
    assert talk is not None
    kept = [message.content[:6] for message in history.path(talk.active_leaf)]
    assert 1 < len(kept) < 41
    assert kept == path[: len(kept)]
    history.close()


def test_a_program_that_holds_the_history_locked_is_waited_for(tmp_path: Path) -> None:
    one = open_history(tmp_path).repository
    other = BackgroundStore(tmp_path)
    asyncio.run(other.open())
    other.submit(lambda history: history.connection.execute("PRAGMA busy_timeout = 50")).result()
    with one.transaction():
        writing = other.submit(lambda history: history.create_conversation(ConversationSettings()))
        time.sleep(0.15)
        assert not writing.done()
    talk = writing.result()
    assert other.persistent
    assert one.conversation(talk.id) == talk
    other.close()
    one.close()


def test_one_that_never_lets_go_does_not_stop_the_chat(tmp_path: Path) -> None:
    one = open_history(tmp_path).repository
    sentences: list[str] = []
    other = BackgroundStore(tmp_path, sentences.append)
    asyncio.run(other.open())
    other.submit(lambda history: history.connection.execute("PRAGMA busy_timeout = 20")).result()
    with one.transaction():
        talk = other.submit(lambda history: history.create_conversation(ConversationSettings())).result()
        assert other.submit(lambda history: history.conversation(talk.id)).result() == talk
    assert not other.persistent
    assert "Another program" in sentences[0]
    other.close()
    one.close()


async def test_damage_found_while_writing_moves_the_chat_to_memory_and_the_file_aside_at_the_next_start(
    tmp_path: Path,
) -> None:
    sentences: list[str] = []
    store = BackgroundStore(tmp_path, sentences.append)
    await store.open()
    talk = await store.run(lambda history: history.create_conversation(ConversationSettings()))
    other = await store.run(lambda history: history.create_conversation(ConversationSettings()))
    for number in range(200):
        await store.run(lambda history, n=number: history.add_message(talk.id, None, "user", f"{n} " * 500))
    store.close()
    path = tmp_path / "history.db"
    with closing(sqlite3.connect(path)) as connection:
        pages = connection.execute(
            "SELECT pageno FROM dbstat WHERE name = 'message' ORDER BY pageno DESC LIMIT 5"
        ).fetchall()
    content = bytearray(path.read_bytes())
    for (page,) in pages:
        content[(page - 1) * 4096 : page * 4096] = bytes(4096)
    path.write_bytes(content)

    store = BackgroundStore(tmp_path, sentences.append)
    assert await store.open() is None
    store.current = other.id
    for _ in range(3):
        await store.run(lambda history: history.summaries())
        await store.run(lambda history: history.add_message(other.id, None, "user", "go on"))
    assert not store.persistent
    assert len(sentences) == 1
    assert "damaged" in sentences[0]
    store.close()

    opened = open_history(tmp_path)
    assert opened.persistent
    assert opened.notice is not None
    (aside,) = tmp_path.glob("history-damaged-*.db")
    assert str(aside) in opened.notice
    (line,) = opened.repository.summaries()
    assert f"{line.messages} messages in 1 conversation were brought back" in opened.notice
    assert 150 < line.messages < 200
    assert f"{200 - line.messages} messages could not be read" in opened.notice
    found, lost = salvage(aside)
    assert ([len(rescued.messages) for rescued in found], lost) == ([line.messages], 200 - line.messages)
    opened.repository.close()
    assert open_history(tmp_path).notice is None
