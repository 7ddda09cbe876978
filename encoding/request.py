"""OpenAI-style chat-completion bodies to conversations. Every refusal says where and what to do."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dsv4chat.encoding.conversation import Conversation, Message, ToolCall
from dsv4chat.encoding.errors import EncodingError
from dsv4chat.encoding.jsontext import dump_json
from dsv4chat.encoding.template import TASKS

EFFORT_NAMES = {
    "minimal": "low",
    "low": "low",
    "medium": "high",
    "high": "high",
    "xhigh": "high",
    "max": "max",
    "ultra": "max",
}
_ROLES = {"developer": "system"} | {
    role: role for role in ("system", "user", "assistant", "tool", "latest_reminder")
}
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]+")


def conversation_from_request(body: Mapping[str, Any]) -> Conversation:
    """The conversation in a chat-completion request body.

    Understood: `messages` (with `reasoning_content`, `tool_calls`, `tool_call_id`, `prefix`, `task`),
    `tools`, `tool_choice` "auto" and "none", `thinking.type`, `reasoning_effort`, `response_format`. What
    only concerns sampling or transport (`model`, `temperature`, `stream`, ...) is ignored. EncodingError on
    anything else.
    """
    if not isinstance(body, Mapping):
        raise EncodingError('The request must be a JSON object with a "messages" list.')
    items = body.get("messages")
    if not isinstance(items, list) or not items:
        raise EncodingError('The request needs "messages": a list with at least one message.')
    messages = tuple(_message(item, f"messages[{i}]") for i, item in enumerate(items))
    _check_order(messages)
    thinking, effort = _mode(body)
    tools = tools_from_request(body.get("tools"))
    choice = body.get("tool_choice")
    if choice == "none":
        tools = ()
    elif choice not in (None, "auto"):
        raise EncodingError(
            '"tool_choice" can be "auto" or "none"; this model cannot be forced to call a tool.'
        )
    return Conversation(messages, tools, thinking, effort, _response_format(body.get("response_format")))


def _mode(body: Mapping[str, Any]) -> tuple[bool, str | None]:
    """(thinking, effort): `thinking.type` decides; without it, only effort "none" turns thinking off."""
    wanted = body.get("thinking")
    kind = None
    if wanted is not None:
        kind = wanted.get("type", "enabled") if isinstance(wanted, Mapping) else "?"
        if kind not in ("enabled", "disabled", "adaptive"):
            raise EncodingError(
                '"thinking" must be {"type": "enabled"} or {"type": "disabled"}, not ' + _shown(wanted) + "."
            )
    effort = body.get("reasoning_effort")
    if (
        effort is not None
        and effort != "none"
        and (not isinstance(effort, str) or effort not in EFFORT_NAMES)
    ):
        raise EncodingError(
            f'"reasoning_effort" must be none, {", ".join(EFFORT_NAMES)}, not {_shown(effort)}.'
        )
    thinking = effort != "none" if kind is None else kind != "disabled"
    return thinking, EFFORT_NAMES.get(effort) if effort else None


def _message(item: Any, where: str) -> Message:
    if not isinstance(item, Mapping):
        raise EncodingError(f"{where} must be an object with role and content.")
    name = item.get("role")
    role = _ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        raise EncodingError(f"{where}.role must be one of {', '.join(_ROLES)}, not {_shown(name)}.")
    if role != "assistant":
        call_id = None
        if role == "tool":
            call_id = _text(item.get("tool_call_id"), f"{where}.tool_call_id")
        content = _content(item.get("content"), f"{where}.content")
        return Message(role, content, tool_call_id=call_id, task=_task(item.get("task"), where))
    calls = _tool_calls(item.get("tool_calls"), where)
    raw = item.get("content")
    if raw is None and not calls:
        raise EncodingError(f"{where} needs content or tool_calls.")
    reasoning = item.get("reasoning_content")
    if reasoning is None:
        reasoning = item.get("reasoning")
    prefix = item.get("prefix", False)
    if not isinstance(prefix, bool):
        raise EncodingError(f"{where}.prefix must be true or false, not {_shown(prefix)}.")
    return Message(
        role,
        "" if raw is None else _content(raw, f"{where}.content"),
        reasoning=None if reasoning is None else _text(reasoning, f"{where}.reasoning_content"),
        tool_calls=calls,
        prefix=prefix,
        task=_task(item.get("task"), where),
    )


def _content(value: Any, where: str) -> str:
    """Text, or a list of text parts, which are joined by a blank line."""
    if isinstance(value, list):
        parts = []
        for i, part in enumerate(value):
            kind = part.get("type") if isinstance(part, Mapping) else None
            if kind != "text":
                raise EncodingError(f"{where}[{i}] is not text; this model reads text parts only.")
            parts.append(_text(part.get("text"), f"{where}[{i}].text"))
        return "\n\n".join(parts)
    return _text(value, where)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise EncodingError(f"{where} must be text, not {_shown(value)}.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise EncodingError(f"{where} holds half of a surrogate pair; send valid Unicode text.") from None
    return value


def _tool_calls(value: Any, where: str) -> tuple[ToolCall, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise EncodingError(f"{where}.tool_calls must be a list.")
    calls = []
    for i, item in enumerate(value):
        at = f"{where}.tool_calls[{i}]"
        function = item.get("function") if isinstance(item, Mapping) else None
        if not isinstance(function, Mapping):
            raise EncodingError(f"{at} must be an object with id and function.")
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            arguments = "{}" if arguments is None else _dump(arguments, f"{at}.function.arguments")
        calls.append(
            ToolCall(
                id=_text(item.get("id"), f"{at}.id"),
                name=_text(function.get("name"), f"{at}.function.name"),
                arguments=_text(arguments, f"{at}.function.arguments"),
            )
        )
    if len({call.id for call in calls}) < len(calls):
        raise EncodingError(f"{where}.tool_calls has the same id twice; give each call its own.")
    # DeepSeek's converter puts calls in the order of their ids, whatever the order in the request.
    return tuple(sorted(calls, key=lambda call: call.id))


def _task(value: Any, where: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or value not in TASKS:
        raise EncodingError(f"{where}.task must be one of {', '.join(TASKS)}, not {_shown(value)}.")
    return value


def tools_from_request(value: Any) -> tuple[dict[str, Any], ...]:
    """The functions in a request's `tools`, each with name, description and parameters; () for None."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise EncodingError('"tools" must be a list of {"type": "function", "function": {...}} objects.')
    tools: list[dict[str, Any]] = []
    for i, item in enumerate(value):
        function = item.get("function") if isinstance(item, Mapping) else None
        if not isinstance(function, Mapping) or item.get("type", "function") != "function":
            raise EncodingError(f'tools[{i}] must be {{"type": "function", "function": {{"name": ...}}}}.')
        name = _text(function.get("name"), f"tools[{i}].function.name")
        if not _TOOL_NAME.fullmatch(name):
            raise EncodingError(
                f"tools[{i}].function.name must consist of letters, digits, _ and -, not {_shown(name)}."
            )
        if any(tool["name"] == name for tool in tools):
            raise EncodingError(f"tools[{i}].function.name: there are two tools called {name}; rename one.")
        description = function.get("description")
        parameters = function.get("parameters")
        if parameters is not None and not isinstance(parameters, Mapping):
            raise EncodingError(f"tools[{i}].function.parameters must be a JSON schema object.")
        tool = {
            "name": name,
            "description": ""
            if description is None
            else _text(description, f"tools[{i}].function.description"),
            "parameters": {} if parameters is None else dict(parameters),
        }
        _text(_dump(tool, f"tools[{i}]"), f"tools[{i}]")
        tools.append(tool)
    return tuple(tools)


def _response_format(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    kind = value.get("type") if isinstance(value, Mapping) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": kind}
    if kind == "json_schema":
        inner = value.get("json_schema")
        if isinstance(inner, Mapping) and isinstance(inner.get("schema"), Mapping):
            _text(_dump(inner["schema"], "response_format"), "response_format")
            return {"type": kind, "schema": inner["schema"]}
        raise EncodingError('"response_format" of type json_schema needs json_schema.schema, a JSON schema.')
    raise EncodingError('"response_format" must be of type text, json_object or json_schema.')


def _check_order(messages: Sequence[Message]) -> None:
    """Each call is answered, each result answers a call, and only the last message is a prefix."""
    messages = [message for message in messages if message.role != "system"]
    waiting: set[str] = set()
    for i, message in enumerate(messages):
        if message.role == "tool":
            if message.tool_call_id not in waiting:
                raise EncodingError(
                    f"The tool result for call {message.tool_call_id!r} does not follow an assistant message "
                    "with that call; put it directly after the message that made the call."
                )
            waiting.discard(message.tool_call_id)
            continue
        if waiting:
            raise EncodingError(
                f"The call {min(waiting)!r} has no result; add a tool message for it before the next turn."
            )
        if message.prefix and i + 1 < len(messages):
            raise EncodingError("Only the last message may be a prefix.")
        waiting = {call.id for call in message.tool_calls}
    if waiting:
        raise EncodingError(f"The call {min(waiting)!r} has no result; add a tool message for it at the end.")


def _dump(value: Any, where: str) -> str:
    try:
        return dump_json(value)
    except (ValueError, TypeError) as error:
        raise EncodingError(f"{where} cannot be written as JSON: {error}.") from None


def _shown(value: Any) -> str:
    """A value as JSON spells it: null, not None."""
    try:
        text = dump_json(value)
        text.encode("utf-8")
    except (TypeError, ValueError):  # no JSON, or half of a surrogate pair
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
