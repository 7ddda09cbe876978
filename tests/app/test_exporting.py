"""A conversation to a file, from inside the app: named by its title, never over another file."""

import json
import resource
from pathlib import Path

import pytest

from dsv4chat.app.exporting import export_conversation
from dsv4chat.exchange import ExchangeError
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


@pytest.mark.parametrize("name", ["x.txt", "x.md.bak", "talk.html", ".x.y"])
def test_an_ending_of_another_format_is_refused_and_nothing_is_written(
    history: Repository, tmp_path: Path, name: str
) -> None:
    with pytest.raises(ExchangeError, match=r"\.md .*\.json"):
        export_conversation(history, 1, str(tmp_path / name))
    assert list(tmp_path.iterdir()) == []


def test_without_an_ending_it_is_markdown_and_the_case_of_one_does_not_matter(
    history: Repository, tmp_path: Path
) -> None:
    assert export_conversation(history, 1, str(tmp_path / "talk")).name == "talk.md"
    with pytest.raises(FileExistsError):
        export_conversation(history, 1, str(tmp_path / "talk"))
    assert json.loads(export_conversation(history, 1, str(tmp_path / "TALK.JSON")).read_text())
    assert export_conversation(history, 1, str(tmp_path / "other.MD")).read_text().startswith("<!--")


def test_a_title_without_a_letter_still_gives_a_name(
    history: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    history.rename(1, "…")
    assert export_conversation(history, 1, "").name == "conversation.md"


def test_a_full_disk_leaves_nothing_so_that_the_name_can_be_used_again(
    history: Repository, tmp_path: Path
) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))  # as good as a full disk
    try:
        with pytest.raises(OSError, match="too large"):
            export_conversation(history, 1, str(tmp_path / "talk.md"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []
    assert export_conversation(history, 1, str(tmp_path / "talk.md")).exists()
