"""`dsv4chat history show` and `export`: calls, errors and answers without a word; devices and full disks."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from dsv4chat.cli import main
from dsv4chat.encoding import ToolCall
from dsv4chat.paths import data_folder
from dsv4chat.store import ConversationSettings, GenerationRecord, TokenFigures, open_history


@pytest.fixture(autouse=True)
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """A conversation whose answer called a tool and failed before it said anything."""
    monkeypatch.setenv("DSV4CHAT_HOME", str(tmp_path / "home"))
    history = open_history(data_folder()).repository
    number = history.create_conversation(ConversationSettings()).id
    question = history.add_message(number, None, "user", "What time is it?").id
    made = GenerationRecord("demo", "abc", "preview", 1)
    answer = history.begin_answer(number, question, made, thinking=False, effort=None).id
    history.finish_answer(
        answer,
        "failed",
        "",
        None,
        0,
        TokenFigures(),
        made,
        tool_calls=(ToolCall("1", "clock", '{"zone": "UTC"}'),),
        error="The engine died.",
    )
    history.close()
    return number


def test_calls_and_errors_are_shown_below_what_was_said(talk: int) -> None:
    result = CliRunner().invoke(main, ["history", "show", str(talk)])
    assert result.exit_code == 0, result.output
    assert [line for line in result.stdout.splitlines() if line] == [
        "(no title)",
        "You:",
        "What time is it?",
        "Assistant (failed):",
        "Tool call:",
        'clock {"zone": "UTC"}',
        "Error:",
        "The engine died.",
    ]


def test_a_device_is_written_into_and_stays_one(talk: int) -> None:
    result = CliRunner().invoke(main, ["history", "export", str(talk), "-o", "/dev/null"])
    assert result.exit_code == 0, result.output
    assert not Path("/dev/null").is_file()


def test_one_conversation_goes_into_a_folder_that_is_there(
    talk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    result = CliRunner().invoke(main, ["history", "export", str(talk), "-o", str(folder)])
    assert result.exit_code == 0, result.output
    (file,) = folder.iterdir()
    assert file.name == f"{talk}.md"
    assert "What time is it?" in file.read_text()
    again = CliRunner().invoke(main, ["history", "export", str(talk), "-o", str(folder)])
    assert again.stderr == f"Error: {file} is there already; add --force to replace it.\n"
    # "-" is standard output, whatever there is.
    monkeypatch.chdir(tmp_path)
    Path("-").mkdir()
    assert "What time is it?" in CliRunner().invoke(main, ["history", "export", str(talk)]).stdout


def test_an_error_names_the_file_that_was_asked_for(talk: int, tmp_path: Path) -> None:
    file = tmp_path / "absent" / "talk.md"
    result = CliRunner().invoke(main, ["history", "export", str(talk), "-o", str(file)])
    assert result.stderr == f"Error: It cannot be read or written: {file} No such file or directory.\n"


def test_a_file_that_cannot_be_put_in_place_leaves_nothing_behind(
    talk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    folder = tmp_path / "exports"
    folder.mkdir()
    result = CliRunner().invoke(main, ["history", "export", str(talk), "-o", str(folder / "chat.json")])
    assert result.exit_code == 1
    assert "No space left on device" in result.stderr
    assert list(folder.iterdir()) == []
