"""The widget for a message of the history, and what all of them can do."""

from collections.abc import Awaitable, Callable
from typing import Protocol, cast

from textual.widget import Widget

from dsv4chat.app.token_cells import TokenCell
from dsv4chat.app.widgets.assistant_message import AssistantMessage
from dsv4chat.app.widgets.tool_result import ToolResult
from dsv4chat.app.widgets.user_message import UserMessage
from dsv4chat.store import Branch, MessageRecord

ReadCells = Callable[[MessageRecord], Awaitable[list[TokenCell] | str]]


class MessageWidget(Protocol):
    """A message on the screen."""

    record: MessageRecord

    def set_branch(self, branch: Branch | None) -> None: ...


def message_widget(
    record: MessageRecord,
    branch: Branch | None = None,
    *,
    unfolded: bool = False,
    coloured: bool = False,
    live: bool = False,
) -> Widget:
    """A message; `live`: an answer that is being written."""
    if record.role == "assistant":
        return AssistantMessage(record, branch, live=live, unfolded=unfolded, coloured=coloured and live)
    if record.role == "tool":
        return ToolResult(record)
    return UserMessage(record, branch)


def as_message(widget: Widget) -> MessageWidget:
    """A widget made here, seen as a message."""
    return cast(MessageWidget, widget)


def set_unfolded(message: Widget, unfolded: bool) -> None:
    """Fold or unfold the thinking of a message that has one."""
    if isinstance(message, AssistantMessage):
        message.set_unfolded(unfolded)


async def set_coloured(message: Widget, coloured: bool, read: ReadCells) -> None:
    """Colour the tokens of an answer by surprise, or no more. What cannot be shown stays as it is."""
    if not isinstance(message, AssistantMessage):
        return
    record = message.record
    if not coloured:
        await message.set_coloured(False)
        return
    if message.live and not record.ids:
        await message.set_coloured(True)
        return
    cells = await read(record)
    if isinstance(cells, list) and message.is_mounted:
        await message.set_coloured(True, cells[: len(record.ids)] if message.live else cells)


def toggle_unfolded(message: Widget) -> None:
    """The same for one message, the other way round."""
    if isinstance(message, AssistantMessage) and message.thinking is not None:
        message.set_unfolded(not message.thinking.unfolded)
