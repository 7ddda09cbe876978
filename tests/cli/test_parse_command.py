"""`dsv4chat parse`: the message of a completion, one answer a line, and a sentence for whatever is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dsv4chat.cli import main

CASES = json.loads((Path(__file__).parents[1] / "data" / "completions.json").read_text("utf-8"))["cases"]
EOS = "<｜end▁of▁sentence｜>"
D = "｜DSML｜"
CALL = f'<{D}invoke name="f">\n<{D}parameter name="p" string="false">[1</{D}parameter>\n</{D}invoke>\n'


def run(*arguments: str, text: str | bytes = "") -> Result:
    result = CliRunner().invoke(main, ["parse", *arguments], input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def lines(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def answers(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_golden_completions_whole_and_in_single_characters() -> None:
    cases = list(CASES.values())
    whole = [{"text": case["text"], "thinking": True} for case in cases]
    pieces = [{"pieces": list(case["text"]), "thinking": True} for case in cases]
    read = answers(run("--jsonl", text=lines(*whole, *pieces)))
    assert len(read) == 2 * len(cases)
    for answer, case in zip(read, cases * 2, strict=True):
        expected = case["message"]
        assert answer["finish_reason"] == case["finish_reason"]
        assert answer["message"]["content"] == expected["content"].removesuffix(EOS)
        assert answer["message"]["reasoning_content"] == expected["reasoning_content"]
        calls = [call | {"id": "<id>"} for call in answer["message"]["tool_calls"]]
        assert calls == expected.get("tool_calls", [])


def test_chat_mode_a_later_think_end_and_a_later_think() -> None:
    read = answers(
        run(
            "--jsonl",
            text=lines({"text": "a</think>b", "thinking": False}, {"text": "r</think>a<think>b</think>c"}),
        )
    )
    assert read[0] == {
        "message": {"content": "ab", "reasoning_content": None, "tool_calls": []},
        "finish_reason": "stop",
    }
    assert read[1]["message"]["content"] == "a<think>bc"


def test_an_invalid_call_is_marked_and_says_why() -> None:
    (answer,) = answers(run("--no-think", text=CALL))
    (call,) = answer["message"]["tool_calls"]
    assert call["valid"] is False
    assert "not JSON" in call["error"]
    assert json.loads(call["function"]["arguments"]) == {"p": "[1"}


def test_calls_are_checked_against_tools_of_the_line_or_of_a_file(tmp_path: Path) -> None:
    tools = [{"type": "function", "function": {"name": "g"}}]
    file = tmp_path / "tools.json"
    file.write_text(json.dumps({"tools": tools}))
    (by_line,) = answers(run("--jsonl", text=lines({"text": CALL, "tools": tools})))
    (by_file,) = answers(run("--tools", str(file), text=CALL))
    for answer in (by_line, by_file):
        assert 'no tool "f"' in answer["message"]["tool_calls"][0]["error"]


def test_the_completion_of_a_file_is_read_in_utf8(tmp_path: Path) -> None:
    file = tmp_path / "completion.txt"
    file.write_text("思考</think>答え 👍🏽", "utf-8")
    (answer,) = answers(run(str(file)))
    assert answer["message"] == {"content": "答え 👍🏽", "reasoning_content": "思考", "tool_calls": []}


def test_pieces_may_cut_a_surrogate_pair() -> None:
    line = '{"pieces": ["a\\ud83d", "\\ude00", "\\ud83d"], "thinking": false}'
    (answer,) = answers(run("--jsonl", text=line))
    assert answer["message"]["content"] == "a😀\ufffd"


BAD_LINES: list[bytes] = [
    *(
        b"nonsense",
        b"[]",
        b"{}",
        b'{"text": 3}',
        b'{"text": null}',
        b'{"pieces": "abc"}',
        b'{"pieces": [1]}',
        b'{"text": "a", "pieces": ["b"]}',
    ),
    *(
        b'{"text": "a", "thinking": "yes"}',
        b'{"text": "a", "tools": 3}',
        b'{"text": "a", "finish_reason": []}',
    ),
    *(b"\xff", b"[" * 200_000, b'{"text": "a", "tools": [{"function": {"name": "\\ud800"}}]}'),
]


@pytest.mark.parametrize("bad", BAD_LINES, ids=range(len(BAD_LINES)))
def test_a_bad_line_gets_an_error_line_and_the_rest_goes_on(bad: bytes) -> None:
    good = b'{"text": "r</think>a"}'
    first, error, last = answers(run("--jsonl", text=good + b"\n" + bad + b"\n" + good + b"\n"))
    assert first == last
    assert list(error) == ["error"]
    assert error["error"].endswith(".")


@pytest.mark.parametrize(
    ("arguments", "text", "code", "says"),
    [
        (["/nowhere"], "", 1, "/nowhere cannot be read"),
        (["--tools", "/nowhere"], "", 1, "/nowhere cannot be read"),
        ([], b"\xff", 1, "not UTF-8"),
        (["--colour"], "", 2, "--colour"),
    ],
)
def test_what_cannot_be_used_is_a_sentence_and_an_exit_code(
    arguments: list[str], text: str | bytes, code: int, says: str
) -> None:
    result = run(*arguments, text=text)
    assert (result.exit_code, result.stdout) == (code, "")
    assert says in result.stderr


def test_help_says_the_exit_codes() -> None:
    assert "Exit codes" in run("--help").stdout
