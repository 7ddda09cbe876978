"""A history written by version 1 of the format (made with the program of that time) comes forward whole."""

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dsv4chat.encoding import ToolCall
from dsv4chat.runtime.protocol import Alternative
from dsv4chat.store import ConversationSettings, Repository, open_history
from dsv4chat.store.opening import FILE_NAME, migrate
from dsv4chat.store.schema import VERSION

FORMAT_1 = Path(__file__).parents[1] / "data" / "history-format-1.db.gz"


def old_history(folder: Path) -> Path:
    path = folder / FILE_NAME
    path.write_bytes(gzip.decompress(FORMAT_1.read_bytes()))
    return path


def check(history: Repository) -> None:
    """What the program of format 1 was told to write."""
    assert [(line.title, line.preview, line.messages) for line in history.summaries()] == [
        ("", "second talk", 2),
        ("Capitals", "What is the capital of France? 深度求索", 3),
    ]
    talk = history.conversation(history.summaries()[1].id)
    tools: list[dict[str, object]] = [{"name": "clock"}]
    assert talk.settings == ConversationSettings("Be brief.", True, "max", {"temperature": 0.5}, tools)
    assert talk.title_by == "model"
    question, shown = history.path(talk.active_leaf)
    assert (shown.content, shown.state, shown.tool_calls) == (
        "It is",
        "stopped",
        (ToolCall("c1", "clock", "{}"),),
    )
    paris, _ = history.messages(history.siblings(shown.id))
    assert (paris.content, paris.reasoning, paris.ids, paris.effort) == (
        "Paris.",
        "Easy zebra.",
        (7, 8, 9),
        "max",
    )
    assert paris.generation is not None
    assert (paris.generation.tokens, paris.generation.ttft_ms) == (3, 12.5)
    figures = history.figures(paris.id)
    assert figures.milliseconds == [10.5, 12.0, 13.5]
    assert figures.kinds == ["reasoning", "answer", "answer"]
    assert figures.alternatives[0] == [Alternative(id=7, text="a", logprob=-0.5)]
    assert [hit.message for hit in history.search("zebra")] == [paris.id]
    assert [hit.message for hit in history.search("深度")] == [question.id]
    latest = history.latest_conversation()
    assert latest is not None
    _, half = history.path(latest.active_leaf)
    assert half.content == "half an ans"
    assert half.ids == (1, 2)


def test_all_of_it_is_there_afterwards_and_works_as_new(tmp_path: Path) -> None:
    old_history(tmp_path)
    opened = open_history(tmp_path)
    history = opened.repository
    assert (opened.persistent, opened.notice) == (True, None)
    check(history)
    assert history.search("half")[0].excerpt == "half an ans"
    talk = history.summaries()[1].id
    first = history.path(history.conversation(talk).active_leaf)[0]
    history.restore_message(history.delete_message(first.id))
    history.edit(first.id, "another zebra")
    history.save_draft(talk, "unsent")
    assert len(history.search("zeb")) == 2
    history.close()
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.execute("INSERT INTO message_text (message_text) VALUES ('integrity-check')")


def test_the_old_file_is_kept_as_it_was(tmp_path: Path) -> None:
    content = old_history(tmp_path).read_bytes()
    open_history(tmp_path).repository.close()
    (copy,) = tmp_path.glob("history-before-format-*.db")
    assert copy.stat().st_mode & 0o077 == 0
    with closing(sqlite3.connect(copy)) as old, closing(sqlite3.connect(":memory:")) as original:
        original.deserialize(content)
        for table in ("conversation", "message", "token_block", "tool_call", "generation"):
            query = f"SELECT * FROM {table} ORDER BY 1, 2"
            assert old.execute(query).fetchall() == original.execute(query).fetchall()
        assert old.execute("PRAGMA user_version").fetchone() == (1,)


def test_a_program_of_the_old_format_that_still_runs_can_go_on_writing(tmp_path: Path) -> None:
    path = old_history(tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        old.execute("SELECT count(*) FROM message").fetchone()
        history = open_history(tmp_path).repository
        talk = history.summaries()[0].id
        number = old.execute(
            "INSERT INTO message (conversation_id, role, content, created, updated) VALUES (?, ?, ?, 1, 1)",
            (talk, "user", "from the past"),
        ).lastrowid
        old.execute(
            "INSERT INTO message_text (rowid, content, reasoning) VALUES (?, 'from the past', '')", (number,)
        )
        assert [hit.message for hit in history.search("past")] == [number]
        history.close()


@pytest.mark.parametrize("place", ["before it", "in the middle of it"])
def test_a_migration_that_is_cut_off_leaves_the_old_history_to_be_brought_forward_again(
    tmp_path: Path, place: str
) -> None:
    path = old_history(tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
    content = path.read_bytes()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        limit = pages if place == "before it" else pages + 8
        connection.execute(f"PRAGMA max_page_count = {limit}")
        with pytest.raises(sqlite3.OperationalError, match="full"):
            migrate(connection)
    assert path.read_bytes() == content
    history = open_history(tmp_path).repository
    check(history)
    history.close()
