"""The widget for a message of the history."""

from textual.widget import Widget

from dsv4chat.app.widgets.assistant_message import AssistantMessage
from dsv4chat.app.widgets.user_message import UserMessage
from dsv4chat.store import MessageRecord


def message_widget(record: MessageRecord, *, unfolded: bool) -> Widget:
    """A finished message."""
    if record.role == "assistant":
        return AssistantMessage(record, unfolded=unfolded)
    return UserMessage(record)


def new_turn(
    user: MessageRecord | None, answer: MessageRecord, *, unfolded: bool
) -> tuple[list[Widget], AssistantMessage]:
    """The widgets of a turn that begins: all of them, and the live one."""
    live = AssistantMessage(answer, live=True, unfolded=unfolded)
    return ([live] if user is None else [UserMessage(user), live]), live


def set_unfolded(message: Widget, unfolded: bool) -> None:
    """Fold or unfold the thinking of a message that has one."""
    if isinstance(message, AssistantMessage) and message.thinking is not None:
        message.thinking.unfolded = unfolded
