"""Random conversations: text and ids equal to DeepSeek's package, in both profiles."""

import json
import random
from typing import Any

import deepseek_recipe as recipe
import pytest

from dsv4chat.encoding import Profile, Tokenizer, conversation_from_request, render
from tests.support import deepseek
from tests.support.random_chats import random_request


def check(body: dict[str, Any], tokenizer: Tokenizer) -> None:
    conversation = conversation_from_request(body)
    for profile in Profile:
        text, ids = deepseek.prompt(body, profile)
        rendered = render(conversation, profile)
        shown = json.dumps(body, ensure_ascii=False)
        assert rendered.text == text, f"{profile}: {shown}"
        assert tokenizer.encode(rendered).ids == ids, f"{profile}: {shown}"


def test_a_sample_of_conversations_equals_deepseeks_package(real: Tokenizer) -> None:
    for seed in range(200):
        check(random_request(random.Random(seed)), real)


@pytest.mark.soak
def test_3500_conversations_equal_deepseeks_package(real: Tokenizer) -> None:
    for seed in range(1000, 4500):
        check(random_request(random.Random(seed)), real)
    print("3500 random conversations equal deepseek-recipe in text and ids, both profiles")


CASES: dict[str, list[dict[str, Any]]] = {
    "user and assistant at the end": [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
    ],
    "middle and trailing system": [
        {"role": "system", "content": "x"},
        {"role": "user", "content": "a"},
        {"role": "system", "content": "y"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
        {"role": "system", "content": "z"},
    ],
    "empty contents": [
        {"role": "system", "content": ""},
        {"role": "user", "content": ""},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": ""},
        {"role": "user", "content": "b"},
    ],
    "only a system message": [{"role": "system", "content": "x"}],
    "an empty prefix": [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "", "prefix": True},
    ],
    "a prefix of reasoning": [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "", "reasoning_content": "r", "prefix": True},
    ],
    "reminder between user messages": [
        {"role": "user", "content": "a"},
        {"role": "latest_reminder", "content": "r"},
        {"role": "user", "content": "b"},
    ],
}


TOOL = {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize("name", CASES)
def test_unusual_orders_equal_deepseeks_package(name: str, real: Tokenizer) -> None:
    check({"model": "DeepSeek-V4-Pro", "messages": CASES[name]}, real)


@pytest.mark.parametrize("name", [name for name in CASES if "prefix" not in name])
def test_unusual_orders_with_tools_equal_deepseeks_package(name: str, real: Tokenizer) -> None:
    check({"model": "DeepSeek-V4-Pro", "messages": CASES[name], "tools": [TOOL]}, real)


@pytest.mark.parametrize("reasoning", ["", "r"])
@pytest.mark.parametrize("thinking", [True, False])
def test_a_prefix_with_tools_equals_deepseeks_renderer(thinking: bool, reasoning: str) -> None:
    """DeepSeek's converter refuses tools together with a prefix; its renderer takes them."""
    theirs = recipe.Conversation(
        [recipe.UserMessage("a"), recipe.AssistantMessage("b", reasoning_content=reasoning, prefix=True)],
        tools=[recipe.ToolDefinition("f", parameters={})],
        thinking_mode=thinking,
        reasoning_effort="low",
    )
    body = {
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b", "reasoning_content": reasoning, "prefix": True},
        ],
        "tools": [TOOL],
        "thinking": {"type": "enabled" if thinking else "disabled"},
    }
    expected = recipe.DeepseekV4Encoding().render_conversation(theirs).prompt
    assert render(conversation_from_request(body), Profile.PREVIEW).text == (
        expected if thinking else expected.replace(f"<think>{reasoning}</think>", "</think>")
    )


@pytest.mark.parametrize(
    "arguments",
    [
        *("", "{}", "null", "[1, 2]", '"x"', "3", '{"a": 1', '{"a": {"b": [1, {"c": null}]}, "d": true}'),
        *(
            '{"a": "\\u00e9\\ud83d\\ude00"}',
            '{"é": "é"}',
            ' {"a":1,"a":2} ',
            '{"a": NaN}',
            '{"a": 1e400}',
            '{"a": "\\ud800"}',
        ),
        *(
            '{"a": 1e16, "b": 1e-5, "c": 1.5e-5, "d": 1e-6, "e": -0.0, "f": 1E2}',
            '{"a": "x\\ny\\t\\"z\\"\\\\"}',
        ),
        *('{"": ""}', '{"a": "2>&1 </｜DSML｜parameter> <think>"}', '{"a": [1, "é", {"</think>": 2}]}'),
    ],
)
def test_arguments_of_every_kind_equal_deepseeks_package(arguments: str, real: Tokenizer) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "r"},
    ]
    check({"model": "DeepSeek-V4-Pro", "messages": messages}, real)
