"""The message of a transcript that keys act on: selected by keys and mouse, brought into the view."""

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import Click
from textual.message import Message
from textual.widget import Widget

from dsv4chat.app.widgets.message_list import MessageList

if TYPE_CHECKING:
    from dsv4chat.store import MessageRecord

STEP = 3  # lines a key scrolls inside a message that is higher than the view


class MessageCursor(VerticalScroll):
    """A scrolled `MessageList` with a selected message."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "select(-1)", "Message above", show=False, id="message_up"),
        Binding("down,j", "select(1)", "Message below", show=False, id="message_down"),
        Binding("e", "ask('edit')", "Edit", id="edit"),
        Binding("r", "ask('regenerate')", "Again", id="regenerate", tooltip="Another answer in its place"),
        Binding("c", "ask('resume')", "Continue", id="resume", tooltip="Go on with an unfinished answer"),
        Binding("left,h", "ask('back')", "‹", id="branch_back", tooltip="The branch before"),
        Binding("right,l", "ask('on')", "›", id="branch_on", tooltip="The branch after"),
        Binding("y", "ask('copy')", "Copy", id="copy_message"),
        Binding("t", "fold", "Thinking", show=False, id="fold", tooltip="Fold or unfold its thinking"),
        Binding("i,enter", "ask('look')", "Look inside", id="look", tooltip="Into every token of an answer"),
        Binding("s", "colour", "Colours", show=False, id="colour", tooltip="Colour tokens by surprise"),
        Binding("d", "ask('delete')", "Delete", id="delete", tooltip="With all that follows"),
        Binding("u", "ask('undo')", "Undo", show=False, id="undo"),
    ]

    class Asked(Message):
        """The person wants `action` done to a message."""

        def __init__(self, action: str, record: "MessageRecord") -> None:
            super().__init__()
            self.action = action
            self.record = record

    def __init__(self, messages: MessageList, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.messages = messages
        self.selected: int | None = None

    @property
    def selected_record(self) -> "MessageRecord | None":
        """The message that keys act on: the selected one, else the last one."""
        records = self.messages.records
        at = None if self.selected is None else self.messages.position(self.selected)
        return records[at] if at is not None else records[-1] if records else None

    def select(self, message: int | None) -> None:
        """Mark a message as the one that keys act on."""
        for other in self.messages.mounted:
            other.remove_class("-selected")
        self.selected = message
        widget = None if message is None else self.messages.widget_of(message)
        if widget is not None:
            widget.add_class("-selected")

    def on_focus(self) -> None:
        if self.selected is None and self.messages.records:
            self.select(self.messages.records[-1].id)

    def on_click(self, event: Click) -> None:
        widget: Widget | None = event.widget
        while widget is not None and widget.parent is not self.messages:
            parent = widget.parent
            widget = parent if isinstance(parent, Widget) else None
        record = getattr(widget, "record", None)
        if record is not None:
            self.select(record.id)

    async def action_select(self, step: int) -> None:
        """The next message, or more of this one if it does not fit the view."""
        record = self.selected_record
        if record is None:
            return
        widget = self.messages.widget_of(record.id)
        if widget is not None and self._scroll_inside(widget, step):
            return
        at = self.messages.position(record.id)
        if at is None or not 0 <= at + step < len(self.messages.records):
            return
        other = self.messages.records[at + step]
        if not self.messages.first <= at + step < self.messages.last:
            await self.messages.show(self.messages.records, self.messages.branches, at + step)
        self._see(other.id, bottom=step < 0)

    def action_ask(self, action: str) -> None:
        record = self.selected_record
        if record is not None:
            self.post_message(self.Asked(action, record))

    def action_colour(self) -> None:
        self.messages.set_coloured(not self.messages.coloured)

    def action_fold(self) -> None:
        from dsv4chat.app.widgets.messages import toggle_unfolded

        record = self.selected_record
        widget = self.messages.widget_of(record.id) if record is not None else None
        if widget is not None:
            toggle_unfolded(widget)

    def _scroll_inside(self, widget: Widget, step: int) -> bool:
        """Scroll if the message goes on beyond the view in this direction; whether it did."""
        region, view = widget.region, self.scrollable_content_region
        beyond = region.bottom - view.bottom if step > 0 else view.y - region.y
        if beyond <= 0 or not region.overlaps(view):
            return False
        self.scroll_relative(y=step * min(STEP, beyond), animate=False)
        return True

    def _see(self, message: int, *, bottom: bool = False) -> None:
        """Select a message and bring it into the view: its beginning, or its end if it comes from below."""
        self.select(message)
        self.call_after_refresh(self._scroll_to_message, message, bottom)

    def _scroll_to_message(self, message: int, bottom: bool) -> None:
        widget = self.messages.widget_of(message)
        if widget is None or self.scrollable_content_region.contains_region(widget.region):
            return
        view = self.scrollable_content_region
        top = widget.region.y - view.y + self.scroll_y
        if bottom and widget.region.height > view.height:
            top += widget.region.height - view.height
        self.scroll_to(y=top, animate=False)
