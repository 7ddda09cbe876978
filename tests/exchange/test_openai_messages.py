"""OpenAI-style JSON of every shape becomes conversations, or a sentence that says where it is wrong."""

import json
from typing import Any

import pytest

from dsv4chat.encoding import ToolCall
from dsv4chat.exchange import ExchangeError, WholeConversation, read_conversations
from dsv4chat.store import ConversationSettings, open_in_memory

HELLO = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."}]


def read(value: Any, now: float = 50.0) -> list[WholeConversation]:
    return read_conversations(json.dumps(value).encode(), now)


def texts(whole: WholeConversation) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in whole.messages]


@pytest.mark.parametrize(
    "raw",
    [
        json.dumps(HELLO),
        json.dumps({"messages": HELLO}),
        "\ufeff" + json.dumps({"model": "x", "messages": HELLO}, indent=2),
    ],
    ids=["a list of messages", "a request", "with a byte order mark"],
)
def test_one_conversation(raw: str) -> None:
    (whole,) = read_conversations(raw.encode(), 50.0)
    assert texts(whole) == [("user", "Hello"), ("assistant", "Hi.")]
    assert whole.record.title == "Hello"
    assert whole.record.title_by == "text"
    assert whole.record.created == 50.0
    assert whole.record.active_leaf == whole.messages[-1].id


@pytest.mark.parametrize(
    "raw",
    [
        json.dumps([{"messages": HELLO}, {"messages": HELLO[:1]}]),
        json.dumps([HELLO, HELLO[:1]]),
        json.dumps({"messages": HELLO}) + "\n\n" + json.dumps({"messages": HELLO[:1]}) + "\n",
        json.dumps(HELLO) + "\r\n" + json.dumps(HELLO[:1]),
        json.dumps(HELLO) + '\n[{"role": "user", "content": "a line\u2028and another"}]',
    ],
    ids=[
        "a list of requests",
        "a list of lists",
        "a request a line",
        "a list a line",
        "a line end of Unicode",
    ],
)
def test_several_conversations(raw: str) -> None:
    assert [len(whole.messages) for whole in read_conversations(raw.encode(), 0.0)] == [2, 1]


def test_all_that_a_request_says_is_kept() -> None:
    clock = {"name": "clock", "description": "The time.", "parameters": {"type": "object"}}
    (whole,) = read(
        {
            "title": " Time ",
            "created": 1700000000,
            "temperature": 0.5,
            "seed": 7,
            "stream": True,
            "reasoning_effort": "max",
            "tools": [{"type": "function", "function": clock}],
            "messages": [
                {"role": "developer", "content": "Be brief."},
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "What"}, {"type": "text", "text": "time?"}],
                },
                {
                    "role": "assistant",
                    "content": None,
                    "reasoning_content": "I look.",
                    "tool_calls": [{"id": "c1", "function": {"name": "clock", "arguments": {"zone": "é"}}}],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "12:00"},
                {"role": "assistant", "content": "Noon.", "prefix": True},
            ],
        }
    )
    assert whole.record.settings == ConversationSettings(
        "Be brief.", True, "max", {"temperature": 0.5, "seed": 7}, [clock]
    )
    assert (whole.record.title, whole.record.title_by, whole.record.created) == ("Time", "person", 1.7e9)
    assert texts(whole) == [
        ("user", "What\n\ntime?"),
        ("assistant", ""),
        ("tool", "12:00"),
        ("assistant", "Noon."),
    ]
    asked, called, result, last = whole.messages
    assert called.reasoning == "I look."
    assert called.tool_calls == (ToolCall("c1", "clock", '{"zone": "é"}'),)
    assert (asked.parent, result.parent, result.tool_call_id) == (None, called.id, "c1")
    assert last.state == "stopped"
    history = open_in_memory()
    record, messages = history.whole(whole.add_to(history))
    assert record.settings == whole.record.settings
    assert [(m.role, m.content, m.reasoning, m.tool_calls) for m in messages] == [
        (m.role, m.content, m.reasoning, m.tool_calls) for m in whole.messages
    ]
    history.close()


LINE = b'{"messages": [{"role": "user", "content": "Hi"}]}\n'


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"\xff\xfe{", "not UTF-8"),
        (b"hello", "neither JSON nor Markdown"),
        (b'{"messages": [', "line 1, column"),
        (b'{"messages": []}\n{"mess', "not JSON: Unterminated string at line 2, column 2"),
        (LINE + b"\n" + LINE + b'{"messages": [}\n' + LINE, "Expecting value at line 4, column 15"),
        (b'{"messages": [\n' + LINE + LINE, "Expecting value at line 1, column 15"),
        (LINE + LINE + b'{"messages": NaN}', "NaN.* in line 3"),
        (b'{"messages": [\n{"role": "user",},\n{"role": "user"}\n]}', "property name.* at line 2"),
        (b"[" * 100_000, "nests too deeply"),
        (b'{"messages": NaN}', "not usable"),
        (b"[]", "holds no conversations"),
        (b"[1, 2]", "holds no conversations"),
        (b"{}", 'no "messages"'),
        (b'{"messages": []}', "at least one message"),
        (b'{"messages": [{"role": "robot", "content": ""}]}', r"messages\[0\].role"),
        (b'{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}', "not text"),
        (b'{"messages": [{"role": "user", "content": "\\ud800"}]}', "surrogate"),
        (b'{"messages": [{"role": "latest_reminder", "content": ""}]}', "latest_reminder"),
        (b'[{"messages": [{"role": "user", "content": ""}]}, {"messages": 1}]', "Conversation 2 of 2"),
        (b'{"messages": [{"role": "tool", "tool_call_id": "x", "content": ""}]}', "does not follow"),
    ],
)
def test_what_cannot_be_read_is_a_sentence(raw: bytes, sentence: str) -> None:
    with pytest.raises(ExchangeError, match=sentence):
        read_conversations(raw, 0.0)
