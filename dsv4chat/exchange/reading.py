"""A file of any kind we know to conversations: our JSON and Markdown, OpenAI-style messages, JSON Lines."""

import json
from typing import Any

import msgspec

from dsv4chat.exchange.conversation import ExchangeError, WholeConversation
from dsv4chat.exchange.json_format import FORMAT, ConversationForm, from_form
from dsv4chat.exchange.markdown import OPENING, from_markdown
from dsv4chat.exchange.openai_messages import from_messages


def read_conversations(raw: bytes, now: float) -> list[WholeConversation]:
    """The conversations in the bytes of a file; now: the time of those that have none.

    Raises ExchangeError, which says which one cannot be used and why.
    """
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ExchangeError(f"It is not UTF-8 text (byte {error.start}); convert it first.") from None
    if text.lstrip().startswith(OPENING):
        return [from_markdown(text.lstrip())]
    if not text.strip():
        raise ExchangeError("It is empty.")
    if not text.lstrip().startswith(("{", "[")):
        raise ExchangeError("It is neither JSON nor Markdown that dsv4chat exported.")
    values = _values(text)
    found = []
    for number, value in enumerate(values, 1):
        try:
            found.append(_conversation(value, now))
        except ExchangeError as error:
            where = f"Conversation {number} of {len(values)}: " if len(values) > 1 else ""
            raise ExchangeError(f"{where}{error}") from None
    return found


def _values(text: str) -> list[Any]:
    """What stands for a conversation each: one object, a list of them, a list of messages, or a line each."""
    try:
        value = _json(text)
    except ExchangeError:
        values = _json_lines(text)
        if values is None:
            raise
        return values
    if isinstance(value, list) and not any(isinstance(item, dict) and "role" in item for item in value):
        if value and all(isinstance(item, dict | list) for item in value):
            return value
        raise ExchangeError("The list holds no conversations and no messages.")
    return [value]


def _json_lines(text: str) -> list[Any] | None:
    """The value of each line that is not blank; None if it is something else that is broken.

    Raises ExchangeError for the first broken line, if the first one or most of them are whole.
    """
    values, errors = [], []
    # Not splitlines: a string in JSON may hold U+2028 and others of its line ends.
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    for number, line in lines:
        try:
            values.append(_json(line, number))
        except ExchangeError as error:
            errors.append((number, error))
    first_is_whole = not errors or errors[0][0] != lines[0][0]
    if len(lines) < 2 or not (first_is_whole or len(values) > len(errors)):
        return None
    if errors:
        raise errors[0][1] from None
    return values


def _conversation(value: Any, now: float) -> WholeConversation:
    if isinstance(value, list):
        return from_messages({"messages": value}, now)
    if not isinstance(value, dict):
        raise ExchangeError("It must be an object or a list of messages.")
    if value.get("format") == FORMAT:
        try:
            return from_form(msgspec.convert(value, ConversationForm))
        except msgspec.ValidationError as error:
            raise ExchangeError(f"{error}.") from None
    if "messages" not in value:
        raise ExchangeError('It has no "messages".')
    return from_messages(value, now)


def _json(text: str, line: int | None = None) -> Any:
    """line: the number of the only one in `text`, None for a whole file."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = f"line {line or error.lineno}, column {error.colno}"
        what = error.msg.removesuffix(" starting at")
        raise ExchangeError(f"It is not JSON: {what} at {where}.") from None
    except (ValueError, RecursionError):
        where = f" in line {line}" if line else ""
        raise ExchangeError(
            f"It is not usable JSON: it nests too deeply, or holds NaN, Infinity or a huge number{where}."
        ) from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")
