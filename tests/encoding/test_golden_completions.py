"""Completions against DeepSeek's own parser (tests/data/completions.json)."""

import json
from pathlib import Path
from typing import Any

import pytest

from dsv4chat.encoding import CompletionParser

CASES = json.loads((Path(__file__).parents[1] / "data" / "completions.json").read_text("utf-8"))["cases"]
EOS = "<｜end▁of▁sentence｜>"


def read(pieces: list[str]) -> tuple[dict[str, Any], str | None]:
    parser = CompletionParser(True)
    for piece in pieces:
        parser.push(piece)
    parser.finish()
    message = parser.message()
    calls = [
        {
            "index": index,
            "id": "<id>",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for index, call in enumerate(message.tool_calls)
    ]
    said = {"role": "assistant", "content": message.content, "reasoning_content": message.reasoning}
    return said | ({"tool_calls": calls} if calls else {}), parser.finish_reason


@pytest.mark.parametrize("name", CASES)
def test_message_equals_deepseeks_parser_in_every_cut(name: str) -> None:
    case = CASES[name]
    text = case["text"]
    # DeepSeek's parser was given the end-of-sentence token as text and kept it; ours ends there.
    expected = case["message"] | {"content": case["message"]["content"].removesuffix(EOS)}
    for pieces in ([text], list(text), *([text[:cut], text[cut:]] for cut in range(len(text)))):
        assert read(pieces) == (expected, case["finish_reason"])
