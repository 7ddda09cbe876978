"""What can be read of a damaged history comes back; the rest is counted, not hidden."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dsv4chat.store import (
    ConversationSettings,
    GenerationRecord,
    StoreError,
    TokenFigures,
    open_history,
    open_in_memory,
)
from dsv4chat.store.opening import FILE_NAME
from dsv4chat.store.salvage import salvage

MADE = GenerationRecord(model="demo", tokenizer="abc", profile="preview", layers=2)
PAGE = 4096


def filled(folder: Path, conversations: int = 12, length: int = 40) -> dict[str, int]:
    """A history whose messages each say who they are; the text of each with its conversation."""
    history = open_history(folder).repository
    texts: dict[str, int] = {}
    for talk in range(conversations):
        number = history.create_conversation(ConversationSettings(f"system {talk}")).id
        history.rename(number, f"title {talk}")
        parent = None
        for place in range(length):
            text = f"message {place} of {talk} " + "x" * 200
            parent = history.add_message(number, parent, ("user", "assistant")[place % 2], text).id
            texts[text] = number
    history.close()
    return texts


def test_a_sound_history_comes_out_whole_with_branches_and_figures(tmp_path: Path) -> None:
    history = open_history(tmp_path).repository
    talk = history.create_conversation(ConversationSettings("Rhyme.")).id
    user = history.add_message(talk, None, "user", "q").id
    answer = history.begin_answer(talk, user, MADE, thinking=True, effort=None).id
    figures = TokenFigures()
    figures.add(7, "reasoning", 1.0, -0.5, [1.0, 2.0])
    history.finish_answer(answer, "complete", "a", "r", 0, figures, MADE)
    other = history.edit(user, "Q")
    history.delete_message(history.edit(user, "not this one").id)
    gone = history.create_conversation(ConversationSettings()).id
    history.add_message(gone, None, "user", "deleted")
    history.delete(gone)
    history.close()
    (found,), lost = salvage(tmp_path / FILE_NAME)
    assert lost == 0
    assert found.record.settings.system == "Rhyme."
    assert [(m.id, m.content) for m in found.messages] == [(user, "q"), (answer, "a"), (other.id, "Q")]
    assert found.figures[answer] == figures
    again = open_in_memory()
    number = again.add_whole(found.record, found.messages, found.figures)
    assert [m.content for m in again.whole(number)[1]] == ["q", "a", "Q"]
    again.close()


@pytest.mark.parametrize("seed", range(6))
def test_pages_overwritten_at_random_cost_only_what_was_on_them(tmp_path: Path, seed: int) -> None:
    texts = filled(tmp_path)
    path = tmp_path / FILE_NAME
    with closing(sqlite3.connect(path)) as connection:
        names = dict(connection.execute("SELECT pageno, name FROM dbstat WHERE path <> '/'"))
    generator = random.Random(seed)
    leaves = [number for number, name in names.items() if name == "message"]
    content = bytearray(path.read_bytes())
    for number in generator.sample(leaves, 3):
        start = (number - 1) * PAGE
        content[start : start + PAGE] = generator.choice((bytes(PAGE), generator.randbytes(PAGE)))
    path.write_bytes(content)
    found, lost = salvage(path)
    said = {m.content: talk.record.id for talk in found for m in talk.messages}
    assert said.items() <= texts.items()
    missing = len(texts) - len(said)
    assert 0 < missing <= 3 * PAGE // 200
    assert lost >= missing
    again = open_in_memory()
    for talk in found:
        assert again.add_whole(talk.record, talk.messages, talk.figures)
    again.close()


def test_conversations_whose_own_entry_is_lost_keep_their_messages(tmp_path: Path) -> None:
    texts = filled(tmp_path, conversations=3)
    path = tmp_path / FILE_NAME
    with closing(sqlite3.connect(path)) as connection:
        root = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'conversation'"
        ).fetchone()[0]
    content = bytearray(path.read_bytes())
    content[(root - 1) * PAGE : root * PAGE] = bytes(PAGE)
    path.write_bytes(content)
    found, lost = salvage(path)
    assert lost == 0
    assert {m.content for talk in found for m in talk.messages} == set(texts)
    assert len(found) == 3


def test_what_is_no_history_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE bookmarks (url TEXT)")
        other.commit()
    (tmp_path / "noise.db").write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 20)
    for name in ("other.db", "noise.db", "absent.db"):
        with pytest.raises(StoreError, match=name):
            salvage(tmp_path / name)
