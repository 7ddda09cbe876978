"""What the parser tells while a completion arrives. The texts of one kind, joined, are the whole of it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby

from dsv4chat.encoding.conversation import ToolCall


@dataclass(frozen=True)
class ReasoningText:
    text: str


@dataclass(frozen=True)
class AnswerText:
    text: str


@dataclass(frozen=True)
class ToolCallStart:
    """A call begins; `index` counts the calls of this completion from 0."""

    index: int
    name: str


@dataclass(frozen=True)
class ToolCallArgument:
    """More of the arguments' JSON text; all of one call, joined, are its `arguments`."""

    index: int
    text: str


@dataclass(frozen=True)
class ToolCallEnd:
    """The call is complete, or given up: then `call.valid` is False and `call.error` says why."""

    index: int
    call: ToolCall


@dataclass(frozen=True)
class Stopped:
    """The completion is over: "stop", "length", or "stopped" by the user."""

    reason: str


Event = ReasoningText | AnswerText | ToolCallStart | ToolCallArgument | ToolCallEnd | Stopped
_TEXTS = (ReasoningText, AnswerText, ToolCallArgument)


def joined(events: Iterable[Event]) -> list[Event]:
    """The same events, neighbouring texts of one kind as one."""
    out: list[Event] = []
    for _, run in groupby(events, key=lambda event: (type(event), getattr(event, "index", None))):
        group = list(run)
        first = group[0]
        if isinstance(first, _TEXTS):
            out.append(
                replace(first, text="".join(event.text for event in group if isinstance(event, _TEXTS)))
            )
        else:
            out += group
    return out
