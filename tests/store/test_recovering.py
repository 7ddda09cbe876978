"""A damaged history comes back as far as its pages can be read, under the numbers everything had."""

import random
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dsv4chat.encoding import ToolCall
from dsv4chat.store import (
    BackgroundStore,
    ConversationSettings,
    GenerationRecord,
    MessageRecord,
    Repository,
    TokenFigures,
    open_history,
)
from dsv4chat.store.opening import FILE_NAME
from dsv4chat.store.pages import Pages

MADE = GenerationRecord(model="demo", tokenizer="abc", profile="preview", layers=2)
PAGE = 4096


def tokens(count: int) -> TokenFigures:
    figures = TokenFigures()
    for number in range(count):
        figures.add(number, "answer", 1.5, -0.5, [1.0, 2.0])
    return figures


def fill(history: Repository, conversations: int = 20, length: int = 12) -> None:
    """Short, long and very long messages, answers with figures and calls, a branch, a draft, approvals."""
    generator = random.Random(1)
    for talk in range(conversations):
        number = history.create_conversation(ConversationSettings(f"system {talk}")).id
        history.rename(number, f"title {talk}")
        parent: int | None = None
        for place in range(0, length, 2):
            text = f"question {place} of {talk} ü" + "深x " * generator.choice((1, 100, 6000))
            user = parent = history.add_message(number, parent, "user", text).id
            parent = history.begin_answer(number, user, MADE, thinking=True, effort=None).id
            calls = (ToolCall("c", "clock", "{}"),) if place == 4 else ()
            history.finish_answer(
                parent, "complete", f"answer {place} of {talk}", "why", 0, tokens(300), MADE, tool_calls=calls
            )
        history.edit(user, f"the last question of {talk} again")
        history.save_draft(number, f"draft {talk}")
    history.set_approval("clock", "always")
    history.delete(2)
    history.note_open(3)


def texts(history: Repository) -> dict[int, list[MessageRecord]]:
    return {line.id: history.whole(line.id)[1] for line in history.summaries(1000)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history")
    history = open_history(folder).repository
    fill(history)
    history.close()
    return folder


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    shutil.copytree(folder, tmp_path / "data")
    return tmp_path / "data"


def test_the_pages_of_a_sound_file_hold_every_row_that_sqlite_finds(folder: Path) -> None:
    with (folder / FILE_NAME).open("rb") as file:
        rows = list(Pages(file).rows())
    numbered = {(row.number, row.values[1:]) for row in rows if row.number is not None}
    others = {row.values for row in rows if row.number is None}
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        for table in ("conversation", "message", "generation", "draft"):
            for row in connection.execute(f"SELECT * FROM {table}"):
                assert (row[0], row[1:]) in numbered
        for table in ("tool_call", "token_block"):
            for row in connection.execute(f"SELECT * FROM {table}"):
                assert row in others


def overwrite(content: bytearray, first: int, count: int, how: bytes) -> None:
    content[first * PAGE : (first + count) * PAGE] = how * count


@pytest.mark.parametrize("how", [bytes(PAGE), random.Random(3).randbytes(PAGE)], ids=["zeros", "noise"])
@pytest.mark.parametrize("count", [1, 3, 6])
def test_with_its_first_pages_overwritten_the_rest_comes_back_under_its_numbers(
    folder: Path, copy: Path, count: int, how: bytes
) -> None:
    before = open_history(folder).repository
    expected = texts(before)
    before.close()
    path = copy / FILE_NAME
    content = bytearray(path.read_bytes())
    overwrite(content, 0, count, how)
    path.write_bytes(content)
    opened = open_history(copy)
    history = opened.repository
    assert opened.persistent
    assert opened.notice is not None
    (aside,) = copy.glob("history-damaged-*.db")
    assert str(aside) in opened.notice
    assert aside.read_bytes() == content
    found = texts(history)
    assert sum(map(len, found.values())) > 0.9 * sum(map(len, expected.values()))
    said = {message.id: message.content for messages in expected.values() for message in messages}
    assert all(said.get(m.id, m.content) == m.content for messages in found.values() for m in messages)
    if count == 1:  # the first page holds the schema only
        assert found == expected
        assert history.draft(5) == "draft 4"
        assert history.approvals(5) == {"clock": "always"}
        assert history.summaries(deleted=True)[0].id == 2
        left = history.left_open()
        assert left is not None
        assert left.id == 3
        assert len(history.figures(expected[3][1].id)) == 300
    number = re.search(r"([\d,]+) messages in (\d+) conversations were brought back", opened.notice)
    assert number is not None
    assert int(number[1].replace(",", "")) == sum(map(len, found.values()))
    assert int(number[2]) == len(found)
    assert history.search("again")[0].excerpt
    check_sound(history)
    history.close()
    assert open_history(copy).notice is None


@pytest.mark.parametrize("page", range(1, 9))
async def test_a_broken_page_that_is_needed_first_is_found_at_the_start(copy: Path, page: int) -> None:
    path = copy / FILE_NAME
    content = bytearray(path.read_bytes())
    overwrite(content, page, 1, bytes(PAGE))
    path.write_bytes(content)
    told: list[str] = []
    store = BackgroundStore(copy, told.append)
    told.append(await store.open() or "")
    shown = await store.run(Repository.left_open)
    assert shown is not None
    assert len(await store.run(lambda history: history.path(shown.active_leaf))) == 11
    # With the page of the conversations it is lost which one was deleted.
    assert len(await store.run(Repository.summaries)) == (20 if page == 1 else 19)
    assert store.persistent
    damaged = list(copy.glob("history-damaged-*.db"))
    assert ("".join(told) != "") == bool(damaged)
    store.close()


@pytest.mark.parametrize("part", [0.8, 0.5, 0.2])
def test_of_a_file_cut_short_what_is_left_comes_back(copy: Path, part: float) -> None:
    path = copy / FILE_NAME
    content = path.read_bytes()
    cut = content[: int(part * len(content))]
    path.write_bytes(cut)
    history = open_history(copy).repository
    found = texts(history)
    assert sum(map(len, found.values())) > part * 0.5 * 20 * 13
    for messages in found.values():
        for message in messages:
            assert message.ids == () or len(message.ids) == 300
            assert message.role == "user" or message.content.startswith("answer")
    check_sound(history)
    talk = history.create_conversation(ConversationSettings()).id
    assert history.add_message(talk, None, "user", "goes on").content == "goes on"
    history.close()


@pytest.mark.parametrize("seed", range(8))
def test_whatever_pages_are_overwritten_the_history_works(copy: Path, seed: int) -> None:
    generator = random.Random(seed)
    path = copy / FILE_NAME
    content = bytearray(path.read_bytes())
    pages = len(content) // PAGE
    for page in generator.sample(range(pages), pages // 5):
        start = page * PAGE + generator.choice((0, 0, 1000))
        end = (page + 1) * PAGE
        content[start:end] = generator.choice((bytes(end - start), generator.randbytes(end - start)))
    content[:16] = bytes(16)
    path.write_bytes(content)
    opened = open_history(copy)
    history = opened.repository
    found = texts(history)
    assert found
    for number in found:
        history.path(history.conversation(number).active_leaf)
        history.add_message(number, history.conversation(number).active_leaf, "user", "on")
    check_sound(history)
    history.close()


def test_what_is_only_in_the_log_of_a_program_that_was_killed_comes_back(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    history = open_history(tmp_path / "first").repository
    fill(history, conversations=3)
    expected = texts(history)
    for name in (FILE_NAME, f"{FILE_NAME}-wal"):  # as the disk is when the program is killed now
        shutil.copy(tmp_path / "first" / name, tmp_path / "data" / name)
    history.close()
    assert (tmp_path / "data" / f"{FILE_NAME}-wal").stat().st_size > 100 * PAGE
    path = tmp_path / "data" / FILE_NAME
    path.write_bytes(b"\x17" * max(PAGE, path.stat().st_size))
    opened = open_history(tmp_path / "data")
    assert texts(opened.repository) == expected
    opened.repository.close()


def test_what_was_deleted_for_good_stays_away(copy: Path) -> None:
    history = open_history(copy).repository
    history.purge(7)
    history.close()
    path = copy / FILE_NAME
    path.write_bytes(path.read_bytes()[:-PAGE])
    history = open_history(copy).repository
    assert 7 not in texts(history)
    assert 8 in texts(history)
    history.close()


def test_without_room_for_a_new_file_the_damaged_one_stays_for_the_next_start(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = copy / FILE_NAME
    content = bytes(PAGE) + path.read_bytes()[PAGE:]
    path.write_bytes(content)

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("dsv4chat.store.opening.recover", full)
        opened = open_history(copy)
    assert not opened.persistent
    assert opened.notice is not None
    assert "disk is full" in opened.notice
    opened.repository.close()
    assert path.read_bytes() == content
    assert [found.name for found in copy.glob("history*")] == [FILE_NAME]
    again = open_history(copy)
    assert len(again.repository.summaries()) == 19
    again.repository.close()


@pytest.mark.parametrize("seed", range(6))
def test_single_bytes_that_are_wrong_cost_little(copy: Path, seed: int) -> None:
    """The file itself is kept as it was found."""
    generator = random.Random(seed)
    path = copy / FILE_NAME
    content = bytearray(path.read_bytes())
    for place in (*generator.sample(range(len(content)), 200), generator.randrange(16)):
        content[place] ^= 1 << generator.randrange(8)
    path.write_bytes(content)
    opened = open_history(copy)
    assert opened.persistent
    assert opened.notice is not None
    (aside,) = copy.glob("history-damaged-*.db")
    assert aside.read_bytes() == content
    assert sum(map(len, texts(opened.repository).values())) > 0.8 * 19 * 13
    check_sound(opened.repository)
    opened.repository.close()


@pytest.mark.parametrize("opens", [True, False])
def test_a_wrong_byte_in_a_text_costs_a_character_only(copy: Path, opens: bool) -> None:
    path = copy / FILE_NAME
    content = bytearray(path.read_bytes())
    at = content.index("question 0 of 4 ü".encode()) + len(b"question 0 of 4 ")
    content[at] = 0xFF
    if not opens:
        content[:16] = bytes(16)
    path.write_bytes(content)
    history = open_history(copy).repository
    assert history.whole(5)[1][0].content.startswith("question 0 of 4 \ufffd")
    history.close()


def test_a_history_that_is_damaged_and_cannot_be_written_is_shown_as_far_as_it_can_be_read(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = copy / FILE_NAME
    content = bytes(PAGE) + path.read_bytes()[PAGE:]
    path.write_bytes(content)

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr("dsv4chat.store.opening._set_aside", refuse)
        opened = open_history(copy)
    assert not opened.persistent
    assert opened.notice is not None
    assert "Permission denied" in opened.notice
    assert re.search(r"[\d,]+ messages in 19 conversations were brought back", opened.notice)
    assert len(opened.repository.summaries()) == 19
    opened.repository.close()
    assert path.read_bytes() == content
    assert [found.name for found in copy.glob("history*")] == [FILE_NAME]


def test_two_programs_that_find_the_damage_at_once_bring_it_back_once(copy: Path) -> None:
    path = copy / FILE_NAME
    path.write_bytes(bytes(PAGE) + path.read_bytes()[PAGE:])
    code = (
        "import sys; from pathlib import Path; from dsv4chat.store import open_history;"
        "opened = open_history(Path(sys.argv[1]));"
        "print(opened.persistent, len(opened.repository.summaries()))"
    )
    programs = [
        subprocess.Popen([sys.executable, "-c", code, str(copy)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert {program.communicate(timeout=60)[0] for program in programs} == {"True 19\n"}
    assert len(list(copy.glob("history-damaged-*.db"))) == 1


def check_sound(history: Repository) -> None:
    connection = history.connection
    assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
