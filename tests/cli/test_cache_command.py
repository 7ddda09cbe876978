"""`dsv4chat cache`: what is saved is listed without an engine, and cleared without a trace."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dsv4chat.cli import main
from dsv4chat.paths import data_folder, saved_caches
from dsv4chat.runtime import Engine, SamplingParams
from dsv4chat.store import ConversationSettings, open_history
from tests.support.engines import save_random

ONE = SamplingParams(temperature=0, max_tokens=1, ignore_eos=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "tiny"
    return save_random(folder, (0, 4, 128), text=True, hidden_size=32, hash_layers=1)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DSV4CHAT_HOME", str(tmp_path))
    return tmp_path


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["cache", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def listed() -> list[dict]:
    return [json.loads(line) for line in run("list", "--json").stdout.splitlines()]


def save(model: Path) -> None:
    """Conversation 7 in two versions of 21 and 31 ids, conversation 8 of 6."""
    engine = Engine.load(model, device="cpu", cache_folder=saved_caches())
    start = list(range(5, 15))
    for ids in ([*start, *range(40, 50)], [*start, *range(60, 80)]):
        list(engine.generate(ids, ONE, conversation="7", boundaries=[10]))
    engine.save("7")
    list(engine.generate([1, 2, 3, 4, 5], ONE, conversation="8\x1b[31m"))
    engine.save("8\x1b[31m")


def test_nothing_is_saved_at_first() -> None:
    assert run("list").stdout == "No caches are saved.\n"
    assert listed() == []
    assert run("clear").stdout == "Deleted 0 files, 0.0 MB.\n"


def test_conversations_are_listed_with_their_size_the_last_used_first(model: Path) -> None:
    save(model)
    files = list(saved_caches().rglob("*.safetensors"))
    first, second = listed()
    assert (first["conversation"], first["tokens"], first["versions"]) == ("8\x1b[31m", 6, 1)
    assert (second["conversation"], second["tokens"], second["versions"]) == ("7", 31, 2)
    assert first["bytes"] + second["bytes"] == sum(path.stat().st_size for path in files)
    assert first["model"] == second["model"] == str(model)
    hours_ago = time.time() - 3 * 3600
    for path in files:
        os.utime(path, (hours_ago, hours_ago))
    text = run("list").stdout
    assert "3 hours ago" in text
    assert "\x1b" not in text
    assert str(saved_caches()) in text


def test_one_conversation_or_all_are_cleared(model: Path) -> None:
    save(model)
    assert run("clear", "nothing").stdout.startswith("Deleted 0 files")
    assert run("clear", "7").stdout.startswith("Deleted 3 files")
    assert [entry["conversation"] for entry in listed()] == ["8\x1b[31m"]
    assert run("clear").stdout.startswith("Deleted 1 file,")
    assert list(saved_caches().iterdir()) == []


def test_a_conversation_deleted_from_the_history_leaves_no_saved_cache(model: Path) -> None:
    history = open_history(data_folder()).repository
    talk = history.create_conversation(ConversationSettings()).id
    history.add_message(talk, None, "user", "Secret")
    history.close()
    engine = Engine.load(model, device="cpu", cache_folder=saved_caches())
    for name in (str(talk), "8"):
        list(engine.generate([1, 2, 3], ONE, conversation=name))
        engine.save(name)
    assert CliRunner().invoke(main, ["history", "delete", str(talk)]).exit_code == 0
    assert [entry["conversation"] for entry in listed()] == ["8"]
    assert CliRunner().invoke(main, ["history", "delete", "--undo", str(talk)]).exit_code == 0


def test_files_that_cannot_be_read_are_shown_and_cleared(model: Path) -> None:
    save(model)
    for path in saved_caches().rglob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:100])
    (entry,) = listed()
    assert (entry["conversation"], entry["bytes"], entry["tokens"]) == (None, 400, 0)
    assert "(unreadable)" in run("list").stdout
    assert run("clear").stdout.startswith("Deleted 4 files")


def test_an_engine_whose_cache_was_cleared_feeds_again_and_says_so(model: Path) -> None:
    save(model)
    engine = Engine.load(model, device="cpu", cache_folder=saved_caches())
    ids = [*range(5, 15), *range(40, 50), 9]
    assert engine.reusable(ids, "7") == 19
    run("clear")
    list(engine.generate(ids, ONE, conversation="7"))
    assert engine.last_turn.reused == 0
    (notice,) = engine.last_turn.notices
    assert "gone" in notice
    assert notice.endswith("1 more.")


def test_it_needs_no_torch() -> None:
    code = (
        "import sys; from dsv4chat.cli import main; main(['cache', 'list'], standalone_mode=False); "
        "print(sorted({'torch', 'numpy', 'safetensors'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == ["No caches are saved.", "[]"]


def test_a_folder_that_cannot_be_made_is_a_sentence(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "file").write_text("in the way")
    monkeypatch.setenv("DSV4CHAT_HOME", str(home / "file"))
    result = run("list")
    assert result.exit_code == 1
    assert result.stderr.startswith("dsv4chat cache: there is no folder for caches")
