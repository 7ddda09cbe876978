"""`dsv4chat prompt`: exact output, one answer a line, and a sentence for whatever is wrong."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dsv4chat.cli import main
from tests.support import deepseek
from tests.support.small_tokenizer import write_tokenizer

CASES = json.loads((Path(__file__).parents[1] / "data" / "prompts.json").read_text("utf-8"))["cases"]
BODY = {"messages": [{"role": "user", "content": "héllo 👋"}]}
PREVIEW = "<｜begin▁of▁sentence｜><｜User｜>héllo 👋<｜Assistant｜><think>"


def run(*arguments: str, text: str | bytes = "") -> Result:
    result = CliRunner().invoke(main, ["prompt", *arguments], input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model")
    write_tokenizer(folder)
    (folder / "config.json").write_text('{"prompt_profile": "preview"}')
    return str(folder)


@pytest.mark.parametrize("profile", ["preview", "current"])
def test_jsonl_answers_every_golden_request_with_text_and_ids(profile: str) -> None:
    lines = "".join(json.dumps(case["request"]) + "\n" for case in CASES)
    result = run("--jsonl", "--profile", profile, "--model", str(deepseek.REAL_TOKENIZER), text=lines)
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert [answer["text"] for answer in answers] == [case[profile] for case in CASES]
    assert [answer["ids"] for answer in answers] == [
        deepseek.prompt(case["request"], profile)[1] for case in CASES
    ]


def test_the_text_is_printed_as_it_is_from_input_and_from_a_file(model: str, tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(BODY))
    for result in (run("--model", model, text=json.dumps(BODY)), run("--model", model, str(file))):
        assert (result.exit_code, result.stdout, result.stderr) == (0, PREVIEW, "")


def test_ids_are_a_json_list(model: str) -> None:
    result = run("--ids", "--model", model, text=json.dumps(BODY))
    ids = json.loads(result.stdout)
    assert ids[0] == 0
    assert all(isinstance(number, int) for number in ids)


def test_an_unknown_profile_is_a_visible_notice(tmp_path: Path) -> None:
    result = run("--model", str(tmp_path), text=json.dumps(BODY))
    assert result.stdout == PREVIEW
    assert "using `preview`" in result.stderr


BAD_LINES: list[bytes] = [
    b"nonsense",
    b"[1]",
    b"3",
    b'"text"',
    b"{}",
    b'{"messages": []}',
    b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
    b"\xff\xfe{}",
    b'{"messages": [{"role": "user", "content": "a"}]',
    b"[" * 200_000,
    b'{"messages": ' + b"[" * 200_000,
    b'{"messages": [{"role": "user", "content": ' + b"9" * 10_000 + b"}]}",
    b'{"messages": [{"role": "user", "content": "a"}], "tools": [NaN]}',
    b"\x00",
]


@pytest.mark.parametrize("bad", BAD_LINES, ids=range(len(BAD_LINES)))
def test_a_bad_line_gets_an_error_line_and_the_rest_goes_on(bad: bytes, model: str) -> None:
    good = json.dumps(BODY).encode()
    result = run("--jsonl", "--model", model, text=good + b"\n" + bad + b"\n\n" + good)
    first, error, last = (json.loads(line) for line in result.stdout.splitlines())
    assert result.exit_code == 0
    assert first["text"] == last["text"] == PREVIEW
    assert list(error) == ["error"]
    assert error["error"].endswith(".")


def test_without_a_tokenizer_jsonl_gives_the_text_and_says_why_there_are_no_ids(tmp_path: Path) -> None:
    result = run("--jsonl", "--profile", "preview", "--model", str(tmp_path), text=json.dumps(BODY))
    answer: dict[str, Any] = json.loads(result.stdout)
    assert (answer["text"], answer["ids"]) == (PREVIEW, None)
    assert "There is no tokenizer.json" in answer["ids_error"]
    assert "There is no tokenizer.json" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "text", "code", "says"),
    [
        (["--model", "/nowhere"], "{}", 1, "There is no model folder /nowhere"),
        (["/nowhere.json"], "", 1, "/nowhere.json cannot be read"),
        (["/"], "", 1, "/ cannot be read"),
        (["--jsonl", "/nowhere.jsonl"], "", 1, "/nowhere.jsonl cannot be read"),
        ([], "", 1, "not JSON"),
        ([], "[]", 1, "must be a JSON object"),
        ([], b"\xff", 1, "not UTF-8"),
        ([], "{}", 1, '"messages"'),
        (["--profile", "april"], "{}", 2, "april"),
        (["--ids", "--jsonl"], "{}", 2, "leave --ids out"),
        (["--colour"], "{}", 2, "--colour"),
    ],
)
def test_what_cannot_be_used_is_a_sentence_and_an_exit_code(
    arguments: list[str], text: str | bytes, code: int, says: str, model: str
) -> None:
    if "--model" not in arguments:
        arguments = ["--model", model, *arguments]
    result = run(*arguments, text=text)
    assert (result.exit_code, result.stdout) == (code, "")
    assert says in result.stderr
    assert "Traceback" not in result.stderr


def test_ids_without_a_tokenizer_are_a_sentence(tmp_path: Path) -> None:
    result = run("--ids", "--profile", "preview", "--model", str(tmp_path), text=json.dumps(BODY))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "There is no tokenizer.json" in result.stderr


def test_help_says_the_exit_codes() -> None:
    assert "Exit codes" in run("--help").stdout


def test_a_reader_that_goes_away_is_no_error_message(model: str, tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text((json.dumps(BODY) + "\n") * 20_000)
    command = [sys.executable, "-m", "dsv4chat", "prompt", "--jsonl", "--model", model, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
