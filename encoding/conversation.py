"""A conversation as the encoder knows it: messages, tools, mode and effort. Plain immutable values."""

from dataclasses import dataclass, field
from typing import Any

ROLES = ("system", "user", "assistant", "tool", "latest_reminder")
EFFORTS = ("low", "high", "max")


@dataclass(frozen=True)
class ToolCall:
    """One call of a tool.

    `arguments` is JSON text, an object when the call is well formed. `valid` is False for a call the parser
    could not accept (bad JSON, unknown tool, cut off ...); `error` then holds a sentence meant for the model,
    to be sent back as the tool's result.
    """

    id: str
    name: str
    arguments: str
    valid: bool = True
    error: str | None = None


@dataclass(frozen=True)
class Message:
    """One message.

    role          system | user | assistant | tool | latest_reminder
    reasoning     assistant: the thinking; None means the turn had none (chat mode)
    tool_call_id  tool: the call this is the result of
    prefix        assistant, last message only: the answer starts with this content and is to be continued
    task          a quick task asked for after this message (see template.TASKS)
    ids           assistant: the ids the model sampled, everything after the <think> or </think> that opened
                  the turn, without the end-of-sentence token. They are rendered as they are instead of
                  tokenising the text again, which may give other ids.
    """

    role: str
    content: str = ""
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    prefix: bool = False
    task: str | None = None
    ids: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Conversation:
    """What a prompt is rendered from.

    tools            JSON objects with name, description, parameters; OpenAI's {"type", "function"} wrapper
                     is accepted too
    thinking         True: the model thinks before it answers
    effort           None | "low" | "high" | "max"; what None means is up to the profile
    response_format  None | {"type": "json_object"} | {"type": "json_schema", "schema": ...}
    """

    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = ()
    thinking: bool = True
    effort: str | None = None
    response_format: dict[str, Any] | None = field(default=None)
