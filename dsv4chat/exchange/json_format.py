"""The JSON form of a conversation: everything the history knows of it. Version 1.

A file holds one such object, or a list of them. `messages` come in the order of their making, each after its
`parent` (null: a first message); two with the same parent are branches; `active` is the last message of the
branch that was shown. Times are seconds since 1970. `tokens` of an answer are lists with one entry a sampled
token: `kinds` a letter each (r reasoning, a answer, t tool call), `logprobs` natural logarithms, `residual`
|X| after each layer; null stands for an infinite number.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import Literal

import msgspec

from dsv4chat.encoding import ToolCall
from dsv4chat.exchange.conversation import ExchangeError, WholeConversation
from dsv4chat.runtime.protocol import Alternative
from dsv4chat.store import (
    ConversationRecord,
    ConversationSettings,
    GenerationRecord,
    MessageRecord,
    TokenFigures,
)

FORMAT = "dsv4chat.conversation"
VERSION = 1
_LETTERS = {"reasoning": "r", "answer": "a", "tool": "t"}
_KINDS = {letter: kind for kind, letter in _LETTERS.items()}

State = Literal["complete", "writing", "stopped", "interrupted", "length", "failed"]
Approval = Literal["once", "always", "never"]


class Tokens(msgspec.Struct, kw_only=True, omit_defaults=True):
    ids: list[int]
    kinds: str
    milliseconds: list[float | None]
    logprobs: list[float | None]
    residual: list[list[float | None]] = []
    alternatives: list[list[Alternative]] = []


class Call(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: str
    name: str
    arguments: str
    valid: bool = True
    error: str | None = None
    approval: Approval | None = None


class MessageForm(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: int
    parent: int | None
    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    reasoning: str | None = None
    state: State = "complete"
    error: str | None = None
    tool_call_id: str | None = None
    thinking: bool | None = None
    effort: str | None = None
    created: float = 0.0
    updated: float = 0.0
    tool_calls: list[Call] = []
    generation: GenerationRecord | None = None
    tokens: Tokens | None = None


class ConversationForm(msgspec.Struct, kw_only=True):
    format: Literal["dsv4chat.conversation"] = "dsv4chat.conversation"
    version: int = VERSION
    title: str = ""
    title_by: Literal["none", "text", "model", "person"] = "none"
    created: float = 0.0
    updated: float = 0.0
    settings: ConversationSettings = ConversationSettings()
    active: int | None = None
    messages: list[MessageForm]


def to_form(whole: WholeConversation) -> ConversationForm:
    """A conversation as the object to be written."""
    record = whole.record
    return ConversationForm(
        title=record.title,
        title_by=record.title_by,  # type: ignore[arg-type]
        created=record.created,
        updated=record.updated,
        settings=record.settings,
        active=record.active_leaf,
        messages=[_message_form(message, whole.figures.get(message.id)) for message in whole.messages],
    )


def from_form(form: ConversationForm) -> WholeConversation:
    """The conversation in an object that was read. Raises ExchangeError."""
    if form.version != VERSION:
        raise ExchangeError(
            f"It is of format {form.version} and this program reads {VERSION}; update dsv4chat to import it."
        )
    seen: set[int] = set()
    for message in form.messages:
        if message.id in seen or (message.parent is not None and message.parent not in seen):
            raise ExchangeError(f"Message {message.id} is there twice, or stands before its parent.")
        seen.add(message.id)
    active = form.active if form.active in seen else (form.messages[-1].id if form.messages else None)
    record = ConversationRecord(
        0, form.title, form.title_by, form.created, form.updated, active, form.settings
    )
    figures = {m.id: _figures(m) for m in form.messages if m.tokens is not None and m.tokens.ids}
    return WholeConversation(record, [_message(message) for message in form.messages], figures)


def _message_form(message: MessageRecord, figures: TokenFigures | None) -> MessageForm:
    approvals = message.approvals or (None,) * len(message.tool_calls)
    return MessageForm(
        id=message.id,
        parent=message.parent,
        role=message.role,  # type: ignore[arg-type]
        content=message.content,
        reasoning=message.reasoning,
        state=message.state,  # type: ignore[arg-type]
        error=message.error,
        tool_call_id=message.tool_call_id,
        thinking=message.thinking,
        effort=message.effort,
        created=message.created,
        updated=message.updated,
        tool_calls=[
            Call(**asdict(call), approval=approval)  # type: ignore[arg-type]
            for call, approval in zip(message.tool_calls, approvals, strict=True)
        ],
        generation=message.generation,
        tokens=None if not figures else _tokens(figures),
    )


def _message(form: MessageForm) -> MessageRecord:
    names = {field.name for field in fields(ToolCall)}
    return MessageRecord(
        id=form.id,
        conversation=0,
        parent=form.parent,
        role=form.role,
        content=form.content,
        created=form.created,
        updated=form.updated or form.created,
        state=form.state,
        reasoning=form.reasoning,
        error=form.error,
        tool_call_id=form.tool_call_id,
        thinking=form.thinking,
        effort=form.effort,
        tool_calls=tuple(ToolCall(**{n: getattr(call, n) for n in names}) for call in form.tool_calls),
        approvals=tuple(call.approval for call in form.tool_calls),
        ids=tuple(form.tokens.ids) if form.tokens else (),
        generation=form.generation,
    )


def _tokens(figures: TokenFigures) -> Tokens:
    """Digits enough to give the very same stored number back: 9 for float32, 4 for bfloat16."""
    return Tokens(
        ids=figures.ids,
        kinds="".join(_LETTERS[kind] for kind in figures.kinds),
        milliseconds=_rounded(figures.milliseconds, 9),
        logprobs=_rounded(figures.logprobs, 9),
        residual=[_rounded(row, 4) for row in figures.residual] if any(figures.residual) else [],
        alternatives=figures.alternatives if any(figures.alternatives) else [],
    )


def _figures(message: MessageForm) -> TokenFigures:
    tokens = message.tokens
    if tokens is None:
        return TokenFigures()
    count = len(tokens.ids)
    figures = TokenFigures(
        tokens.ids,
        [_KINDS.get(letter, "answer") for letter in tokens.kinds],
        _restored(tokens.milliseconds, math.inf),
        _restored(tokens.logprobs, -math.inf),
        [_restored(row, math.inf) for row in tokens.residual] or [[] for _ in range(count)],
        tokens.alternatives or [[] for _ in range(count)],
    )
    lengths = {len(getattr(figures, field.name)) for field in fields(figures)}
    if lengths != {count} or not all(0 <= number < 2**32 for number in tokens.ids):
        raise ExchangeError(f"The lists in `tokens` of message {message.id} do not fit together.")
    return figures


def _rounded(numbers: Iterable[float], digits: int) -> list[float | None]:
    return [float(f"{number:.{digits}g}") if math.isfinite(number) else None for number in numbers]


def _restored(numbers: Iterable[float | None], instead: float) -> list[float]:
    return [instead if number is None else number for number in numbers]
