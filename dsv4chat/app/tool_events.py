"""What happens with tools, as the screen gets to know it; part of `dsv4chat.app.events`."""

from dataclasses import dataclass
from typing import Literal

from dsv4chat.encoding import ToolCall
from dsv4chat.store import MessageRecord

CallState = Literal["waiting", "running", "done", "error", "invalid", "refused", "stopped"]


@dataclass(frozen=True, slots=True)
class ToolsSwitched:
    """`count` tools are on offer in the open conversation from the next turn on; 0: tools are off."""

    count: int


@dataclass(frozen=True, slots=True)
class ApprovalWanted:
    """The person is asked whether the call may run."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ApprovalOver:
    """The question is answered, or needs no answer any more."""


@dataclass(frozen=True, slots=True)
class CallChanged:
    """Call number `position` of answer `message` waits, runs, or has ended; `seconds`: it ran."""

    message: int
    position: int
    state: CallState
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ResultAdded:
    """A tool's result has become a message at the end of the path."""

    record: MessageRecord


ToolNews = ToolsSwitched | ApprovalWanted | ApprovalOver | CallChanged | ResultAdded
