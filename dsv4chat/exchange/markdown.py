"""The Markdown form of a conversation: the branch that is shown, to be read by people and by `import`.

Comments say what is what, so that every text comes back exactly, whatever is in it. The word they begin
with, the mark, is chosen such that no text of the conversation contains it:

    <!-- dsv4chat conversation mark0 {"title": ...} -->
    <!-- mark0 message {"role": "user", "tool_calls": [...], ...} -->
    <!-- mark0 content -->    the text, between empty lines    <!-- mark0 end -->

and `reasoning` like `content`. What stands outside of these is for the reader only.
"""

import re
from dataclasses import replace
from typing import Any

import msgspec

from dsv4chat.exchange.conversation import ExchangeError, WholeConversation
from dsv4chat.exchange.json_format import ConversationForm, MessageForm, from_form, to_form

OPENING = "<!-- dsv4chat conversation "
_FIRST = re.compile(re.escape(OPENING) + r"(mark\d+) (\{.*\}) -->\n")
_NAMES = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool result"}
_STATES = {
    "stopped": "stopped",
    "interrupted": "interrupted",
    "length": "cut off at the limit",
    "failed": "failed",
}
_TICKS = re.compile("`+")


def to_markdown(whole: WholeConversation) -> str:
    """The branch of `whole` that is shown."""
    path = whole.active_path()
    form = to_form(replace(whole, messages=path, figures={}))
    mark = _unused_mark(form)
    data = msgspec.to_builtins(form) | {"messages": []}
    parts = [f"{OPENING}{mark} {_json(data)} -->\n# {_line(form.title) or 'Conversation'}\n"]
    if form.settings.system:
        parts.append("".join(f"> {line}\n" for line in form.settings.system.splitlines()))
    if len(path) < len(whole.messages):
        parts.append(f"*Messages of other branches that are left out: {len(whole.messages) - len(path)}.*\n")
    parts += [_message(mark, message) for message in form.messages]
    parts.append(f"<!-- {mark} end of the conversation -->\n")
    return "\n".join(parts)


def from_markdown(text: str) -> WholeConversation:
    """What `to_markdown` wrote. Raises ExchangeError."""
    first = _FIRST.match(text)
    if first is None:
        raise ExchangeError("This is no Markdown that dsv4chat exported, so it cannot be imported.")
    mark = first[1]
    if f"<!-- {mark} end of the conversation -->" not in text:
        raise ExchangeError("The end of the exported conversation is missing; export it again.")
    part = re.compile(
        rf"^<!-- {mark} (?:message (\{{[^\n]*\}}) -->$"
        rf"|(content|reasoning) -->\n\n(.*?)\n\n<!-- {mark} end -->$)",
        re.MULTILINE | re.DOTALL,
    )
    messages: list[dict[str, Any]] = []
    for match in part.finditer(text):
        if match[1] is not None:
            messages.append(_object(match[1]))
        elif messages:
            messages[-1][match[2]] = match[3]
    try:
        return from_form(msgspec.convert(_object(first[2]) | {"messages": messages}, ConversationForm))
    except msgspec.ValidationError as error:
        raise ExchangeError(f"The comments in the exported Markdown cannot be used: {error}.") from None


def _message(mark: str, message: MessageForm) -> str:
    data = msgspec.to_builtins(message)
    data.pop("content", None)
    data.pop("reasoning", None)
    state = _STATES.get(message.state)
    lines = [f"<!-- {mark} message {_json(data)} -->", f"## {_NAMES[message.role]}", ""]
    if message.reasoning is not None:
        lines += ["<details><summary>Thinking</summary>", ""]
        lines += [f"<!-- {mark} reasoning -->", "", message.reasoning, "", f"<!-- {mark} end -->", ""]
        lines += ["</details>", ""]
    if message.content:
        lines += [f"<!-- {mark} content -->", "", message.content, "", f"<!-- {mark} end -->", ""]
    for call in message.tool_calls:
        longest = max(map(len, _TICKS.findall(call.arguments)), default=0)
        fence = "`" * max(3, longest + 1)
        lines += [f"**Tool call** `{_line(call.name)}`", "", f"{fence}json", call.arguments, fence, ""]
    if state:
        lines += [f"*({state}{': ' + _line(message.error) if message.error else ''})*", ""]
    return "\n".join(lines)


def _unused_mark(form: ConversationForm) -> str:
    everything = msgspec.json.encode(form).decode()
    number = 0
    while f"<!-- mark{number} " in everything:
        number += 1
    return f"mark{number}"


def _json(data: dict[str, Any]) -> str:
    """JSON in one line that cannot end the comment it stands in."""
    return msgspec.json.encode(data).decode().replace("<", "\\u003c").replace(">", "\\u003e")


def _object(text: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ExchangeError(f"A comment in the exported Markdown is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise ExchangeError("A comment in the exported Markdown is not a JSON object.")
    return value


def _line(text: str) -> str:
    return " ".join(text.split())
