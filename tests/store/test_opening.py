"""Whatever is found at the place of the history, the program gets a working one and nothing is lost."""

import json
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dsv4chat.store import BackgroundStore, ConversationSettings, StoreNewer, open_history
from dsv4chat.store.opening import FILE_NAME, migrate
from dsv4chat.store.schema import MIGRATIONS


def write_one(folder: Path, text: str = "kept") -> None:
    repository = open_history(folder).repository
    talk = repository.create_conversation(ConversationSettings()).id
    repository.add_message(talk, None, "user", text)
    repository.close()


def texts(folder: Path) -> list[str]:
    repository = open_history(folder).repository
    try:
        return [summary.preview for summary in repository.summaries()]
    finally:
        repository.close()


def test_folder_and_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    before = os.umask(0)
    try:
        opened = open_history(folder)
        talk = opened.repository.create_conversation(ConversationSettings()).id
        opened.repository.add_message(talk, None, "user", "secret")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}
        opened.repository.close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert modes.pop("running") == 0o700
    assert set(modes.values()) == {0o600}
    assert f"{FILE_NAME}-wal" in modes


def test_loose_permissions_of_an_existing_history_are_tightened(tmp_path: Path) -> None:
    write_one(tmp_path)
    tmp_path.chmod(0o755)
    (tmp_path / FILE_NAME).chmod(0o644)
    open_history(tmp_path).repository.close()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600


@pytest.mark.parametrize("damage", ["garbage", "cut", "zeros in the middle"])
def test_a_damaged_history_is_set_aside_and_what_can_be_read_comes_back(tmp_path: Path, damage: str) -> None:
    path = tmp_path / FILE_NAME
    write_one(tmp_path)
    content = path.read_bytes()
    if damage == "garbage":
        content = b"this is not a database" * 100
    elif damage == "cut":
        content = content[:5000]
    else:
        content = content[:100] + bytes(8000) + content[8100:]
    path.write_bytes(content)
    opened = open_history(tmp_path)
    assert opened.persistent
    assert opened.notice is not None
    assert "damaged" in opened.notice
    back = ["kept"] if damage == "zeros in the middle" else []
    assert ("1 message in 1 conversation was brought back" in opened.notice) == bool(back)
    assert ("Nothing could be brought back" in opened.notice) != bool(back)
    assert [line.preview for line in opened.repository.summaries()] == back
    opened.repository.close()
    (aside,) = tmp_path.glob("history-damaged-*.db")
    assert aside.read_bytes() == content
    assert str(aside) in opened.notice
    write_one(tmp_path, "after")
    assert texts(tmp_path) == ["after", *back]


def test_a_database_of_another_program_is_set_aside(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as other:
        other.execute("CREATE TABLE bookmarks (url TEXT)")
        other.commit()
    opened = open_history(tmp_path)
    assert opened.notice is not None
    assert "another program" in opened.notice
    opened.repository.close()
    (aside,) = tmp_path.glob("history-damaged-*.db")
    with closing(sqlite3.connect(aside)) as kept:
        assert kept.execute("SELECT count(*) FROM bookmarks").fetchone() == (0,)


def test_a_newer_history_is_left_alone_and_chats_go_to_a_file_beside_it(tmp_path: Path) -> None:
    write_one(tmp_path, "from the future")
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as future:
        future.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 5}")
    before = (tmp_path / FILE_NAME).read_bytes()
    opened = open_history(tmp_path)
    assert opened.persistent
    assert opened.notice is not None
    assert "newer version" in opened.notice
    talk = opened.repository.create_conversation(ConversationSettings()).id
    opened.repository.add_message(talk, None, "user", "now")
    opened.repository.close()
    assert (tmp_path / FILE_NAME).read_bytes() == before
    assert texts(tmp_path) == ["now"]


def test_an_older_history_is_brought_forward_after_a_copy_was_made(tmp_path: Path) -> None:
    write_one(tmp_path, "old")
    path, copy = tmp_path / FILE_NAME, tmp_path / "copy.db"
    longer = (*MIGRATIONS, "CREATE TABLE extra (id INTEGER);\nINSERT INTO extra VALUES (1);\n")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate(connection, longer, backup=copy)
        assert connection.execute("SELECT id FROM extra").fetchall() == [(1,)]
        assert connection.execute("PRAGMA user_version").fetchone() == (len(longer),)
        assert connection.execute("SELECT content FROM message").fetchall() == [("old",)]
    with closing(sqlite3.connect(copy)) as old:
        assert old.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert old.execute("SELECT content FROM message").fetchall() == [("old",)]


def test_a_migration_that_fails_leaves_the_old_version(tmp_path: Path) -> None:
    write_one(tmp_path, "old")
    bad = (*MIGRATIONS, "CREATE TABLE extra (id INTEGER);\nINSERT INTO nowhere VALUES (1);\n")
    with closing(sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)) as connection:
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, bad)
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert connection.execute("SELECT name FROM sqlite_schema WHERE name = 'extra'").fetchall() == []
    assert texts(tmp_path) == ["old"]


def test_migrating_a_newer_file_is_refused(tmp_path: Path) -> None:
    write_one(tmp_path)
    with closing(sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
        with pytest.raises(StoreNewer):
            migrate(connection)


def test_where_no_folder_can_be_made_the_history_lives_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    opened = open_history(tmp_path / "file" / "data")
    assert not opened.persistent
    assert opened.notice is not None
    assert "only until you quit" in opened.notice
    talk = opened.repository.create_conversation(ConversationSettings()).id
    assert opened.repository.add_message(talk, None, "user", "works").content == "works"


_READER = """
import json, os, sys
from pathlib import Path
from dsv4chat.store import BackgroundStore, ConversationSettings, open_history
if os.geteuid() == 0:
    os.setuid(65534)
opened = open_history(Path(sys.argv[1]))
history = opened.repository
talk = history.create_conversation(ConversationSettings()).id
history.add_message(talk, None, "user", "new")
found = [line.preview for line in history.summaries()], [hit.excerpt for hit in history.search("kept")]
print(json.dumps([opened.persistent, opened.notice, *found]))
history.close()
"""


def read_as_another(folder: Path) -> tuple[bool, str, list[str], list[str]]:
    """What a program sees that may write nowhere: one of the user `nobody`, if root runs the tests."""
    run = subprocess.run(
        [sys.executable, "-c", _READER, str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    persistent, notice, previews, found = json.loads(run.stdout)
    return persistent, notice, previews, found


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter and none but its owner write to (pytest's own cannot be entered)."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755)


def test_in_a_read_only_home_an_empty_history_lives_in_memory(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    persistent, notice, previews, _ = read_as_another(open_folder / "data")
    assert not persistent
    assert "only until you quit" in notice
    assert previews == ["new"]


@pytest.mark.parametrize("ended", ["properly", "by kill -9"])
def test_a_read_only_history_can_be_read_and_searched(open_folder: Path, ended: str) -> None:
    folder = open_folder / "data"
    history = open_history(folder).repository
    talk = history.create_conversation(ConversationSettings()).id
    history.add_message(talk, None, "user", "kept")
    if ended == "properly":
        history.close()
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = {path.name: path.read_bytes() for path in folder.rglob("*.db*")}
    persistent, notice, previews, found = read_as_another(folder)
    assert not persistent
    assert "It can be read" in notice
    assert previews == ["new", "kept"]
    assert found == ["kept"]
    assert {path.name: path.read_bytes() for path in folder.rglob("*.db*")} == before
    if ended != "properly":
        history.close()


def break_index(folder: Path, how: bytes) -> None:
    """Overwrite the pages of the index; every other page stays."""
    path = folder / FILE_NAME
    with closing(sqlite3.connect(path)) as connection:
        pages = connection.execute(
            "SELECT pageno FROM dbstat WHERE name IN ('message_text_data', 'message_text_idx')"
        ).fetchall()
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    content = bytearray(path.read_bytes())
    for (page,) in pages:
        content[(page - 1) * size : page * size] = how * (size // len(how))
    path.write_bytes(content)


@pytest.mark.parametrize("how", [b"\0", b"\xff", b"\x0a\x00\x01"])
def test_a_broken_index_of_the_search_is_made_anew_when_one_searches(tmp_path: Path, how: bytes) -> None:
    write_one(tmp_path, "kept")
    break_index(tmp_path, how)
    assert texts(tmp_path) == ["kept"]
    history = open_history(tmp_path).repository
    assert [hit.excerpt for hit in history.search("ke")] == ["kept"]
    assert history.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    history.close()


@pytest.mark.parametrize("how", [b"\0", b"\xff", b"\x0a\x00\x01"])
async def test_a_broken_index_of_the_search_does_not_stop_the_chat(tmp_path: Path, how: bytes) -> None:
    write_one(tmp_path, "kept")
    break_index(tmp_path, how)
    store = BackgroundStore(tmp_path)
    await store.open()
    talk = await store.run(lambda history: history.create_conversation(ConversationSettings()))
    await store.run(lambda history: history.add_message(talk.id, None, "user", "keep on"))
    assert store.persistent
    found = await store.run(lambda history: history.search("ke"))
    assert [hit.excerpt for hit in found] == ["keep on", "kept"]
    store.close()
