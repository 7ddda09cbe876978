"""What the loop of answers and tool calls tells."""

from dataclasses import dataclass
from typing import Literal

from dsv4chat.encoding import Message, ToolCall

Outcome = Literal["done", "error", "invalid", "refused", "stopped"]


@dataclass(frozen=True, slots=True)
class ToolRunning:
    """The tool runs."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolDone:
    """The call has its result. outcome: "done", or why `result` begins with "Error: ". seconds: it ran."""

    call: ToolCall
    result: str
    outcome: Outcome
    seconds: float = 0.0

    @property
    def message(self) -> Message:
        """As the model gets it."""
        return Message("tool", self.result, tool_call_id=self.call.id)


@dataclass(frozen=True, slots=True)
class RoundsUsedUp:
    """The model has called tools `rounds` times for one message; it is told to answer without."""

    rounds: int


ToolEvent = ToolRunning | ToolDone | RoundsUsedUp
