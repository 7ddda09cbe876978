"""Tool calls as text, and the parser over a completion: the same whole as in single characters."""

import json
from typing import Any

from dsv4chat.encoding import CompletionParser, Event, Stopped, ToolCallArgument, ToolCallEnd, ToolCallStart
from dsv4chat.encoding.events import joined

D = "｜DSML｜"


def parameter(name: str, value: str, string: str = "true") -> str:
    return f'<{D}parameter name="{name}" string="{string}">{value}</{D}parameter>\n'


def invoke(*parameters: str, name: str = "get_weather") -> str:
    return f'<{D}invoke name="{name}">\n{"".join(parameters)}</{D}invoke>\n'


def block(*calls: str, wrapper: str = "tool_calls") -> str:
    return f"\n\n<{D}{wrapper}>\n{''.join(calls)}</{D}{wrapper}>"


def run(
    text: str, thinking: bool = True, reason: str = "stop", tools: Any = None
) -> tuple[CompletionParser, list[Event]]:
    """The parser after `text` and its events, the same whole as in single characters."""
    parser = CompletionParser(thinking, tools=tools)
    events = [event for character in text for event in parser.push(character)] + parser.finish(reason)
    whole = CompletionParser(thinking, tools=tools)
    assert joined(whole.push(text) + whole.finish(reason)) == joined(events)
    check_consistent(parser, events)
    return parser, joined(events)


def read(text: str, thinking: bool = True, reason: str = "stop", tools: Any = None) -> CompletionParser:
    return run(text, thinking, reason, tools)[0]


def check_consistent(parser: CompletionParser, events: list[Event]) -> None:
    message = parser.message()
    assert "".join(e.text for e in events if type(e).__name__ == "ReasoningText") == (message.reasoning or "")
    assert "".join(e.text for e in events if type(e).__name__ == "AnswerText") == message.content
    assert tuple(e.call for e in events if isinstance(e, ToolCallEnd)) == message.tool_calls
    for index, call in enumerate(message.tool_calls):
        mine = [e for e in events if getattr(e, "index", None) == index]
        assert mine[0] == ToolCallStart(index, call.name)
        assert mine[-1] == ToolCallEnd(index, call)
        assert "".join(e.text for e in mine if isinstance(e, ToolCallArgument)) == call.arguments
        assert isinstance(json.loads(call.arguments), dict)
        assert call.valid == (call.error is None)
    assert isinstance(events[-1], Stopped)
    assert sum(isinstance(e, Stopped) for e in events) == 1
