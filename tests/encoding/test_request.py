"""Chat-completion bodies: what is understood, and that everything else is refused with a sentence."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsv4chat.encoding import EncodingError, Profile, conversation_from_request, render
from tests.support.deepseek import prompt

USER = {"role": "user", "content": "a"}


def assistant(**more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "b"} | more


def call(arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}} | more


RESULT = {"role": "tool", "tool_call_id": "1", "content": "r"}


@pytest.mark.parametrize(
    ("more", "thinking", "effort"),
    [
        ({}, True, None),
        ({"thinking": {"type": "enabled"}}, True, None),
        ({"thinking": {"type": "disabled"}, "reasoning_effort": "max"}, False, "max"),
        ({"reasoning_effort": "none"}, False, None),
        ({"reasoning_effort": "none", "thinking": {"type": "enabled"}}, True, None),
        ({"reasoning_effort": "minimal"}, True, "low"),
        ({"reasoning_effort": "medium"}, True, "high"),
        ({"reasoning_effort": "ultra", "thinking": None}, True, "max"),
    ],
)
def test_mode_and_effort(more: dict[str, Any], thinking: bool, effort: str | None) -> None:
    conversation = conversation_from_request({"messages": [USER]} | more)
    assert (conversation.thinking, conversation.effort) == (thinking, effort)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"a":1}', '{"a":1}'),
        ({"a": [1, "é"]}, '{"a": [1, "é"]}'),
        ([1, 2], "[1, 2]"),
        ("", ""),
        (None, "{}"),
    ],
)
def test_arguments_may_be_text_or_json(arguments: Any, text: str) -> None:
    messages = [USER, assistant(tool_calls=[call(arguments)]), RESULT]
    assert conversation_from_request({"messages": messages}).messages[1].tool_calls[0].arguments == text


def test_reasoning_and_tasks_are_read() -> None:
    messages = [USER, assistant(reasoning_content="r"), USER | {"task": "query"}]
    read = conversation_from_request({"messages": messages}).messages
    assert (read[1].reasoning, read[2].task) == ("r", "query")


def test_developer_messages_are_system_messages() -> None:
    body = {"messages": [{"role": "developer", "content": "d"}, USER], "reasoning_effort": "low"}
    assert render(conversation_from_request(body), Profile.CURRENT).text.startswith(
        "<｜begin▁of▁sentence｜>d<｜User｜>"
    )


def test_tools_are_reduced_to_name_description_and_parameters() -> None:
    function = {"parameters": {"type": "object"}, "strict": True, "name": "f"}
    body = {"messages": [USER], "tools": [{"type": "function", "function": function}]}
    assert conversation_from_request(body).tools == (
        {"name": "f", "description": "", "parameters": {"type": "object"}},
    )
    assert conversation_from_request(body | {"tool_choice": "none"}).tools == ()


BAD: list[tuple[Any, str]] = [
    (None, "JSON object"),
    ([], "JSON object"),
    ({}, '"messages"'),
    ({"messages": []}, '"messages"'),
    ({"messages": "hi"}, '"messages"'),
    ({"messages": ["hi"]}, r"messages\[0\]"),
    ({"messages": [{}]}, r"messages\[0\]\.role"),
    ({"messages": [{"role": ["user"], "content": "a"}]}, r"messages\[0\]\.role"),
    ({"messages": [{"role": "robot", "content": "a"}]}, "robot"),
    ({"messages": [{"role": "user"}]}, r"messages\[0\]\.content must be text"),
    ({"messages": [{"role": "user", "content": 3}]}, "must be text"),
    ({"messages": [{"role": "user", "content": "\ud800"}]}, "surrogate"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, r"content\[0\] is not text"),
    ({"messages": [{"role": "user", "content": ["a"]}]}, r"content\[0\] is not text"),
    ({"messages": [USER, {"role": "assistant"}]}, "needs content or tool_calls"),
    ({"messages": [USER, assistant(prefix="yes")]}, "prefix must be true or false"),
    ({"messages": [USER, assistant(prefix=True), USER]}, "last message"),
    ({"messages": [USER, assistant(reasoning_content=3)]}, "reasoning_content must be text"),
    ({"messages": [USER | {"task": "poem"}]}, "task must be one of"),
    ({"messages": [USER, RESULT]}, "does not follow"),
    ({"messages": [USER, assistant(tool_calls=[call()])]}, "no result"),
    ({"messages": [USER, assistant(tool_calls=[call()]), USER]}, "no result"),
    ({"messages": [USER, assistant(tool_calls=[call(), call()]), RESULT]}, "same id twice"),
    ({"messages": [USER, assistant(tool_calls=[call(id=3)])]}, r"tool_calls\[0\]\.id must be text"),
    ({"messages": [USER, assistant(tool_calls=[3])]}, r"tool_calls\[0\] must be an object"),
    ({"messages": [USER, assistant(tool_calls="x")]}, "must be a list"),
    ({"messages": [USER, {"role": "tool", "content": "r"}]}, "tool_call_id must be text"),
    ({"messages": [USER], "thinking": True}, '"thinking" must be'),
    ({"messages": [USER], "thinking": {"type": "maybe"}}, '"thinking" must be'),
    ({"messages": [USER], "reasoning_effort": "huge"}, "huge"),
    ({"messages": [USER], "reasoning_effort": ["low"]}, '"reasoning_effort" must be'),
    ({"messages": [USER], "tools": {}}, '"tools" must be a list'),
    ({"messages": [USER], "tools": [{"name": "f"}]}, r"tools\[0\]"),
    ({"messages": [USER], "tools": [{"type": "function", "function": {"name": "a b"}}]}, "letters, digits"),
    ({"messages": [USER], "tools": [{"type": "function", "function": {"name": "f"}}] * 2}, "two tools"),
    (
        {"messages": [USER], "tools": [{"type": "function", "function": {"name": "f", "parameters": 3}}]},
        "JSON schema object",
    ),
    (
        {"messages": [USER], "tools": [{"function": {"name": "f", "parameters": {"a": float("inf")}}}]},
        "cannot be written as JSON",
    ),
    ({"messages": [USER], "tool_choice": "required"}, '"tool_choice"'),
    ({"messages": [USER], "response_format": {"type": "yaml"}}, '"response_format"'),
    ({"messages": [USER], "response_format": {"type": "json_schema"}}, "json_schema.schema"),
]


@pytest.mark.parametrize(("body", "says"), BAD, ids=range(len(BAD)))
def test_a_body_that_cannot_be_used_is_refused_with_a_sentence(body: Any, says: str) -> None:
    with pytest.raises(EncodingError, match=says) as caught:
        conversation_from_request(body)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": None}],
        [{"role": "system", "content": None}, USER],
        [{"role": "latest_reminder", "content": None}, USER],
        [USER, assistant(tool_calls=[call()]), RESULT | {"content": None}],
    ],
)
def test_a_null_where_text_belongs_is_refused_as_deepseeks_package_refuses_it(messages: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"should be a string|invalid type: null"):
        prompt({"model": "DeepSeek-V4-Pro", "messages": messages}, "current")
    with pytest.raises(EncodingError, match=r"content must be text, not null\."):
        conversation_from_request({"messages": messages})


def test_a_null_beside_tool_calls_is_no_text_as_in_deepseeks_package() -> None:
    body = {
        "model": "DeepSeek-V4-Pro",
        "messages": [USER, assistant(content=None, tool_calls=[call()]), RESULT],
    }
    text = render(conversation_from_request(body), Profile.CURRENT).text
    assert text == prompt(body, "current")[0]
    assert "None" not in text


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.sampled_from(["user", "a", "", "enabled", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "type", "function", "name", "id", "text", "tool_calls", "arguments", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
KEYS = st.sampled_from(
    ["messages", "tools", "thinking", "reasoning_effort", "tool_choice", "response_format"]
)


@given(st.dictionaries(KEYS, JSON, max_size=5), JSON)
def test_any_json_gives_a_prompt_or_a_sentence(body: dict[str, Any], message: Any) -> None:
    for candidate in (body, {"messages": [USER]} | body, body | {"messages": [USER, message]}):
        try:
            text = render(conversation_from_request(candidate), Profile.CURRENT).text
        except EncodingError:
            continue
        text.encode("utf-8")
