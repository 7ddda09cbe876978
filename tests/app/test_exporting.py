"""A conversation to a file, from inside the app: named by its title, never over another file."""

import json
from pathlib import Path

import pytest

from dsv4chat.app.exporting import export_conversation
from dsv4chat.store import ConversationSettings, Repository, open_in_memory


@pytest.fixture
def history() -> Repository:
    history = open_in_memory()
    number = history.create_conversation(ConversationSettings()).id
    question = history.add_message(number, None, "user", "What is 2 + 2?")
    history.add_message(number, question.id, "assistant", "It is **4**.")
    history.rename(number, "Sums: /etc/passwd & co.")
    return history


def test_without_a_name_the_title_names_it_and_nothing_is_replaced(
    history: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = [export_conversation(history, 1, target) for target in ("", "", str(tmp_path))]
    assert [path.name for path in paths] == [
        "Sums-etc-passwd-co.md",
        "Sums-etc-passwd-co-2.md",
        "Sums-etc-passwd-co-3.md",
    ]
    assert all(path.parent == tmp_path for path in paths)
    assert "It is **4**." in paths[0].read_text()


def test_a_name_decides_the_format_and_is_refused_if_it_is_taken(history: Repository, tmp_path: Path) -> None:
    path = export_conversation(history, 1, str(tmp_path / "talk.json"))
    assert "It is **4**." in json.dumps(json.loads(path.read_text()))
    with pytest.raises(FileExistsError):
        export_conversation(history, 1, str(path))
    with pytest.raises(OSError, match="No such file"):
        export_conversation(history, 1, str(tmp_path / "missing" / "talk.md"))


def test_a_title_without_a_letter_still_gives_a_name(
    history: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    history.rename(1, "…")
    assert export_conversation(history, 1, "").name == "conversation.md"
