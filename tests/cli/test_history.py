"""`dsv4chat history`: every command on a real history, through pipes and on a terminal, without an engine."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dsv4chat.cli import main
from dsv4chat.paths import data_folder
from dsv4chat.store import ConversationSettings, GenerationRecord, Repository, TokenFigures, open_history
from tests.support.terminal import Terminal

NASTY = "red \x1b[31m \x1b]52;c;QQ==\x07 \u202e \x9b2J \x00 end"
COMMAND = [sys.executable, "-m", "dsv4chat", "history"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DSV4CHAT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def history() -> Iterator[Repository]:
    """The program's history, open beside the commands, as while the app runs."""
    repository = open_history(data_folder()).repository
    yield repository
    repository.close()


def capitals(history: Repository) -> int:
    """A conversation with two branches, thinking, a call and figures."""
    talk = history.create_conversation(ConversationSettings("Be brief.")).id
    history.rename(talk, "Capitals", "model")
    question = history.add_message(talk, None, "user", "What is the capital of France?").id
    made = GenerationRecord("demo", "abc", "preview", 1)
    answer = history.begin_answer(talk, question, made, thinking=True, effort=None).id
    figures = TokenFigures()
    figures.add(7, "answer", 1.5, -0.25, [2.0])
    history.finish_answer(answer, "stopped", "Paris.", "Easy zebra.", 0, figures, made)
    history.edit(question, "What is the capital of Italy?")
    history.switch(answer)
    return talk


def run(*arguments: str, text: str | bytes = "") -> Result:
    result = CliRunner().invoke(main, ["history", *arguments], input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def done(*arguments: str, text: str | bytes = "") -> str:
    result = run(*arguments, text=text)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def refused(*arguments: str, text: str | bytes = "", code: int = 1) -> str:
    result = run(*arguments, text=text)
    assert result.exit_code == code
    assert "Traceback" not in result.stderr
    return result.stderr


def test_an_empty_history_is_said_to_be_empty() -> None:
    assert run("list").stderr == "There are none.\n"
    assert "Nothing was found" in run("search", "x").stderr
    assert done("list", "--json") == ""
    assert "empty" in refused("show", "last")


def test_list_shows_the_last_used_first_and_says_when_there_are_more(history: Repository) -> None:
    for number in range(3):
        talk = history.create_conversation(ConversationSettings()).id
        history.add_message(talk, None, "user", f"question\n{number}")
    assert [line.split()[-1] for line in done("list").splitlines()] == ["2", "1", "0"]
    result = run("list", "--limit", "2")
    assert len(result.stdout.splitlines()) == 2
    assert "--all" in result.stderr
    assert [line["preview"] for line in lines(done("list", "--all", "--json"))] == [
        "question\n2",
        "question\n1",
        "question\n0",
    ]


def test_search_finds_words_phrases_beginnings_and_thoughts(history: Repository) -> None:
    talk = capitals(history)
    text = done("search", "capital of", "fra")
    assert text.splitlines() == [f"{talk:>6}  Capitals", "        You: What is the capital of France?"]
    assert "Assistant, thinking: Easy zebra." in done("search", "zebra")
    found = lines(done("search", "capital", "--json"))
    assert [hit["excerpt"][-6:] for hit in found] == ["Italy?", "rance?"]
    assert found[0]["marks"] == [[12, 19]]
    assert len(lines(done("search", "capital", "--limit", "1", "--json"))) == 1
    other = history.create_conversation(ConversationSettings()).id
    history.add_message(other, None, "user", "capital letters")
    assert len(done("search", "capital", "--in", str(other)).splitlines()) == 2


def test_show_prints_the_branch_that_is_shown(history: Repository) -> None:
    talk = capitals(history)
    text = done("show", str(talk))
    assert [line for line in text.splitlines() if line] == [
        "Capitals",
        "(1 more in other branches)",
        "System:",
        "Be brief.",
        "You:",
        "What is the capital of France?",
        "Assistant (stopped):",
        "Paris.",
    ]
    assert "Thinking:\nEasy zebra.\n" in done("show", "last", "--thinking")
    shown = json.loads(done("show", "last", "--json"))
    assert [message["content"] for message in shown["messages"]] == [
        "What is the capital of France?",
        "Paris.",
    ]


def test_json_goes_through_a_pipe_and_comes_back_with_branches_and_figures(history: Repository) -> None:
    talk = capitals(history)
    raw = done("export", str(talk), "--format", "json")
    (added,) = lines(done("import", "-", "--json", text=raw))
    assert added["title"] == "Capitals"
    again = json.loads(done("export", str(added["id"]), "--format", "json"))
    original = json.loads(raw)
    assert len(again["messages"]) == 3
    for ours, theirs in zip(again["messages"], original["messages"], strict=True):
        for message in (ours, theirs):
            del message["id"], message["parent"]
        assert ours == theirs
    assert "tokens" in again["messages"][1]
    plain = json.loads(done("export", str(talk), "--format", "json", "--no-figures"))
    assert [message for message in plain["messages"] if "tokens" in message] == []
    everything = json.loads(done("export", "--all", "--format", "json"))
    assert len(everything) == 2


def test_markdown_goes_to_files_and_a_folder_and_comes_back(history: Repository, tmp_path: Path) -> None:
    talk = capitals(history)
    file = tmp_path / "talk.md"
    done("export", str(talk), "-o", str(file))
    assert file.read_text().endswith("end of the conversation -->\n")
    assert f"{file} is there already; add --force" in refused("export", str(talk), "-o", str(file))
    done("export", str(talk), "-o", str(file), "--force")
    assert len(done("import", str(file), str(file)).splitlines()) == 2
    assert done("export", str(talk)) == file.read_text()
    folder = tmp_path / "all"
    done("export", "--all", "-o", str(folder))
    names = sorted(path.name for path in folder.iterdir())
    assert names == [f"{number}-Capitals.md" for number in range(talk, talk + 3)]
    as_json = tmp_path / "talk.json"
    done("export", str(talk), "-o", str(as_json))
    assert json.loads(as_json.read_bytes())["format"] == "dsv4chat.conversation"


def test_openai_messages_are_imported_from_standard_input() -> None:
    body = {"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."}]}
    assert done("import", "-", text=json.dumps([body, body])).split() == ["1", "Hello", "2", "Hello"]
    assert "Hi." in done("show", "2")


def test_deleting_can_be_undone_until_it_is_for_good(history: Repository) -> None:
    talk = capitals(history)
    result = run("delete", str(talk))
    assert f"--undo {talk}" in result.stderr
    assert done("list") == ""
    assert "Capitals" in done("list", "--deleted")
    done("delete", "--undo", str(talk))
    assert "Capitals" in done("list")
    assert refused("delete", "--forever", str(talk), text="n\n")
    assert "Capitals" in done("list")
    done("delete", "--forever", "last", "--yes")
    assert "not in the history" in refused("show", str(talk))


def test_a_damaged_history_is_imported_as_far_as_it_can_be_read(home: Path) -> None:
    history = open_history(data_folder()).repository
    capitals(history)
    history.close()
    other = home / "other.db"
    (data_folder() / "history.db").rename(other)
    assert done("import", str(other)).split()[1:] == ["Capitals"]
    assert "Paris." in done("show", "last")
    assert "program" in refused("import", str(_foreign(home)))


def _foreign(folder: Path) -> Path:
    path = folder / "foreign.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
        connection.commit()
    return path


@pytest.mark.parametrize(
    ("arguments", "text", "code", "sentence"),
    [
        (["show", "7"], "", 1, "not in the history"),
        (["show", "seven"], "", 2, "no number of a conversation"),
        (["show", "9" * 30], "", 2, "no number"),
        (["export"], "", 2, "or --all"),
        (["export", "1", "--all"], "", 2, "or --all"),
        (["export", "--all"], "", 2, "--output DIR"),
        (["delete", "1", "--undo", "--forever"], "", 2, "exclude"),
        (["import", "absent.json"], "", 1, "absent.json"),
        (["import", "-"], "", 1, "standard input was not imported. It is empty"),
        (["import", "-"], '{"messages": [{"role": "user"}]}', 1, "messages[0].content must be text"),
        (["import", "."], "", 1, "directory"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(arguments: list[str], text: str, code: int, sentence: str) -> None:
    assert sentence in refused(*arguments, text=text, code=code)


def test_a_file_with_an_error_is_not_imported_in_part() -> None:
    body = {"messages": [{"role": "user", "content": "Hello"}]}
    assert "Conversation 2 of 2" in refused("import", "-", text=json.dumps([body, {"messages": 1}]))
    assert done("list") == ""


def test_where_nothing_can_be_written_one_can_read_but_not_import(home: Path) -> None:
    history = open_history(data_folder()).repository
    capitals(history)
    history.close()
    data = home / "data"
    running = data / "running"
    running.rmdir()
    running.write_text("in the way")  # as good as a read-only folder, also for root
    result = run("list")
    assert "Capitals" in result.stdout
    assert "It can be read" in result.stderr
    assert "nothing was changed" in refused("delete", "last")


def test_a_reader_that_goes_away_is_no_error(history: Repository) -> None:
    talk = history.create_conversation(ConversationSettings()).id
    history.add_message(talk, None, "user", "long " * 100_000)
    process = subprocess.Popen([*COMMAND, "show", "last"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(60) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


def test_control_characters_are_exact_in_a_pipe_and_shown_on_a_terminal(
    history: Repository, home: Path
) -> None:
    talk = history.create_conversation(ConversationSettings(NASTY)).id
    history.rename(talk, NASTY)
    history.add_message(talk, None, "user", NASTY)
    piped = subprocess.run([*COMMAND, "show", "last"], capture_output=True, check=True).stdout
    assert NASTY.encode() in piped
    for arguments in (
        ["show", "last"],
        ["export", "last"],
        ["export", "last", "--format", "json"],
        ["search", "red"],
        ["list"],
    ):
        terminal = Terminal([*COMMAND, *arguments], env={"NO_COLOR": "1"})
        assert terminal.wait(60) == 0
        while terminal.read(0.2):
            pass
        terminal.close()
        drawn = terminal.output.decode()
        assert "red" in drawn
        assert not set(drawn) & {"\x1b", "\x07", "\u202e", "\x9b", "\x00"}, (arguments, drawn)


def test_no_command_loads_the_engine_or_the_app(history: Repository) -> None:
    capitals(history)
    code = (
        "import sys\nfrom dsv4chat.cli import main\n"
        "main(sys.argv[1:], standalone_mode=False)\n"
        "print(sorted({'torch', 'numpy', 'transformers', 'textual', 'tokenizers'} & set(sys.modules)))"
    )
    for arguments in (["list"], ["show", "last"], ["export", "last"], ["search", "paris"]):
        run = subprocess.run(
            [sys.executable, "-c", code, "history", *arguments],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ,
        )
        assert run.stdout.splitlines()[-1] == "[]", arguments
