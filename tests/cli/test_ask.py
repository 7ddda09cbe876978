"""`dsv4chat ask` as a user runs it: a program with arguments, pipes, a terminal and signals."""

import json
import os
import pty
import subprocess

import pytest
from click.testing import CliRunner

from dsv4chat.cli import main
from dsv4chat.encoding import Conversation, Message, Profile, Tokenizer, render
from dsv4chat.visible import visible
from tests.support.asking import COMMAND, ask, lines, quiet

NUMBERS = ("--temperature", "--top-p", "--min-p", "--repetition-penalty")

pytestmark = pytest.mark.usefixtures("home")


def test_json_is_one_object_a_line_with_every_figure(folder):
    result = quiet(ask("hi", "--model", folder, "--json", "--max-tokens", 6, "--seed", 3))
    assert result.returncode == 0
    events = lines(result)
    kinds = [event["event"] for event in events]
    tokens = [event for event in events if event["event"] == "token"]
    assert set(kinds) == {"prefill", "token", "done"}
    assert kinds == sorted(kinds, key=["prefill", "token", "done"].index)
    assert len(tokens) == 6
    for event in events:
        assert ("ms" in event) == (event["event"] == "token")
    for token in tokens:
        assert token["kind"] in ("reasoning", "answer", "tool")
        assert isinstance(token["id"], int)
        assert isinstance(token["text"], str)
        assert token["logprob"] < 0
        assert len(token["x"]) == 5
        assert all(x > 0 for x in token["x"])
    done = events[-1]
    assert (done["reason"], done["prefilled"], done["reused"]) == ("length", 6, 0)
    assert done["ttft_ms"] > 0
    assert done["tokens_per_second"] > 0
    prefill = [event for event in events if event["event"] == "prefill"]
    assert (prefill[0]["done"], prefill[-1]["done"]) == (0, 6)


def test_the_pipe_is_appended_to_the_prompt_and_a_seed_repeats_the_answer(folder):
    """The same question twice, once as text: the answer on standard output, the rest on standard error."""
    options = ("--model", folder, "--max-tokens", 12, "--seed", 9, "--no-think")
    events = lines(ask("one\n\ntwo", *options, "--json"))
    assert {event["kind"] for event in events if event["event"] == "token"} <= {"answer", "tool"}
    piped = quiet(ask("one", *options, "--stats", text="two\n"))
    assert piped.returncode == 0
    assert piped.stdout.rstrip("\n") == events[-1]["content"].rstrip("\n")
    assert "cut off: the limit of 12 tokens" in piped.stderr
    assert f"of the prompt {events[-1]['prefilled']} read" in piped.stderr


@pytest.mark.parametrize(
    ("arguments", "conversation", "profile"),
    [
        (
            ["--system", "Be brief.", "--effort", "max", "--profile", "current"],
            Conversation((Message("system", "Be brief."), Message("user", "hi")), effort="max"),
            Profile.CURRENT,
        ),
        (
            ["--no-think", "--effort", "max"],
            Conversation((Message("user", "hi"),), thinking=False),
            Profile.PREVIEW,
        ),
    ],
)
def test_system_effort_and_profile_reach_the_prompt(folder, arguments, conversation, profile):
    expected = Tokenizer.from_folder(folder).encode(render(conversation, profile)).ids
    events = lines(ask("hi", "--model", folder, "--json", "--max-tokens", 0, *arguments))
    assert events[-1]["prefilled"] == len(expected)


def test_the_settings_sample_unless_an_option_does_and_win_over_the_model(folder, tmp_path):
    def hot(target):
        (target / "generation_config.json").write_text('{"temperature": 50.0}')

    def said(model, *options):
        return lines(quiet(ask("hi", "--model", model, "--json", *options)))[-1]

    model = damaged(folder, tmp_path / "hot", hot)
    certain = said(folder, "--temperature", 0, "--max-tokens", 20)
    (tmp_path / "home" / "config").mkdir(exist_ok=True)
    (tmp_path / "home" / "config" / "settings.toml").write_text(
        "[sampling]\ntemperature = 0.0\nmax_tokens = 20\n"
    )
    by_settings = said(model)
    assert (by_settings["content"], by_settings["tokens"]) == (certain["content"], certain["tokens"])
    assert said(model, "--max-tokens", 3)["tokens"] == 3
    (tmp_path / "home" / "config" / "settings.toml").write_text("[sampling]\ntemperature = -1\n")
    unusable = quiet(ask("hi", "--model", folder, "--max-tokens", 1))
    assert unusable.returncode == 0
    assert "sampling.temperature" in unusable.stderr


def test_input_that_is_no_text_is_refused(folder):
    result = subprocess.run(
        [*COMMAND, "What is this?", "--model", str(folder), "--json"],
        input=b"\x89PNG\r\n\xff\xfe",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 1
    event = json.loads(result.stdout)
    assert event["kind"] == "EncodingError"
    assert "not UTF-8 text (byte 0)" in event["message"]
    assert b"Traceback" not in result.stderr


def test_a_turn_without_a_token_has_no_time_to_its_first(folder):
    result = quiet(ask("hi", "--model", folder, "--json", "--max-tokens", 0))
    done = lines(result)[-1]
    assert (done["tokens"], done["ttft_ms"]) == (0, None)
    said = quiet(ask("hi", "--model", folder, "--max-tokens", 0, "--stats"))
    assert "first token –" in said.stderr
    assert "0 ms" not in said.stderr


def test_an_unusable_home_is_said_once_and_leaves_nothing_behind(folder, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("DSV4CHAT_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    result = quiet(ask("hi", "--model", folder, "--max-tokens", 1))
    assert result.returncode == 0
    assert [line for line in result.stderr.splitlines() if "DSV4CHAT_HOME" in line] == [
        f"DSV4CHAT_HOME ({tmp_path / 'file'}) cannot be used (a file is in its place): the engine's log is "
        "kept only while it runs."
    ]
    assert list((tmp_path / "tmp").iterdir()) == []


def test_nonsense_stops_at_the_context(folder):
    result = quiet(ask("hi", "--model", folder, "--max-context", 40, "--temperature", 0, "--json"))
    assert result.returncode == 0
    events = lines(result)
    assert events[-1]["reason"] in ("length", "stop")
    assert sum(event["event"] == "token" for event in events) <= 34


# ---- errors: a sentence, an exit code, no traceback ----------------------------------------------------


def damaged(folder, target, change):
    target.mkdir()
    for file in folder.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    change(target)
    return target


def cut_shard(target):
    shard = next(target.glob("*.safetensors"))
    shard.write_bytes(shard.read_bytes()[:-999])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (cut_shard, "safetensors"),
        (lambda target: (target / "config.json").write_text("{"), "config.json"),
        (lambda target: (target / "tokenizer.json").unlink(), "tokenizer.json"),
    ],
    ids=["truncated shard", "broken config", "no tokenizer"],
)
def test_a_damaged_model_is_a_sentence(folder, tmp_path, change, sentence):
    broken = damaged(folder, tmp_path / "broken", change)
    result = quiet(ask("hi", "--model", broken))
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    assert sentence in result.stderr


@pytest.mark.parametrize(
    ("name", "prepare", "kind"),
    [
        ("nothing", lambda folder: None, "ConfigError"),
        ("file", lambda folder: folder.write_text("x"), "ConfigError"),
        ("empty", lambda folder: folder.mkdir(), "ConfigError"),
        ("list", lambda folder: write(folder, {"config.json": "[]"}), "ConfigError"),
        ("weightless", lambda folder: write(folder, {"config.json": "{}"}), "CheckpointError"),
        ("mute", lambda folder: write(folder, {"config.json": "{}", "a.safetensors": ""}), "EncodingError"),
    ],
)
def test_a_folder_that_is_no_model_is_refused_before_anything_is_started(tmp_path, name, prepare, kind):
    folder = tmp_path / name
    prepare(folder)
    result = quiet(ask("hi", "--model", folder, "--json"))
    assert result.returncode == 1
    (event,) = lines(result)
    assert (event["event"], event["kind"]) == ("error", kind)
    assert str(folder) in event["message"]
    assert not list((tmp_path / "home").rglob("*.log"))  # no engine was started
    app = CliRunner().invoke(main, ["--model", str(folder)])
    assert app.exit_code == 1
    assert app.output == f"Error: {event['message']}\n"


def write(folder, files):
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)


def test_errors_are_events_in_json(folder, tmp_path):
    result = quiet(ask("hi", "--model", tmp_path / "nothing", "--json"))
    assert result.returncode == 1
    (event,) = lines(result)
    assert event["event"] == "error"
    assert event["kind"] == "ConfigError"
    assert event["message"] in result.stderr
    overflow = quiet(ask("long " * 50, "--model", folder, "--max-context", 20, "--json"))
    assert overflow.returncode == 1
    assert lines(overflow)[-1]["kind"] == "ContextOverflowError"
    assert "--max-context" in overflow.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["hi", "--effort", "extreme"],
        ["hi", "--kv-dtype", "int3"],
        ["hi", "--device", "abacus"],
        ["hi", "--profile", "old"],
        ["hi", "--temperature", "-1"],
        ["hi", "--top-p", "0"],
        *(["hi", name, value] for name in NUMBERS for value in ("nan", "inf", "-inf", "-1")),
        ["hi", "--top-k", str(2**63)],
        ["hi", "--max-tokens", str(2**63)],
        ["hi", "--max-context", str(2**63)],
        ["hi", "--max-tokens", "many"],
        ["hi", "--no-such-flag"],
        [],
        [""],
    ],
)
def test_wrong_usage_is_told_with_code_2(arguments):
    result = CliRunner().invoke(main, ["ask", *arguments])
    assert result.exit_code == 2
    assert "Error: " in result.output
    assert "Traceback" not in result.output


def test_help_documents_the_exit_codes():
    result = CliRunner().invoke(main, ["ask", "--help"])
    assert result.exit_code == 0
    for code in ("0    ", "1    ", "2    ", "130  "):
        assert code in result.output


def test_an_option_before_the_command_is_explained():
    result = CliRunner().invoke(main, ["--model", "x", "ask", "hi"])
    assert result.exit_code == 2
    assert "dsv4chat ask --model" in result.output


# ---- terminals ------------------------------------------------------------------------------------------


def test_a_terminal_is_shown_control_characters_and_progress(folder):
    """Both streams on a pseudo-terminal: no byte of the model's may act on it, thinking is dim."""
    leader, follower = pty.openpty()
    options = ["--model", str(folder), "--max-tokens", "150", "--seed", "1", "--temperature", "3"]
    with subprocess.Popen(
        [*COMMAND, "hi", *options], stdin=subprocess.DEVNULL, stdout=follower, stderr=follower
    ) as process:
        os.close(follower)
        output = b""
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:  # the last end was closed
                break
            if not piece:
                break
            output += piece
        assert process.wait(20) == 0
    os.close(leader)
    text = output.decode("utf-8")
    assert "\x1b[2m" in text
    assert "tensors" in text
    for ours in ("\x1b[2m", "\x1b[22m", "\r\x1b[K", "\r\n"):
        text = text.replace(ours, "")
    assert text == visible(text)
    assert any(chr(0x2400 + code) in text for code in range(32))  # it did say some
