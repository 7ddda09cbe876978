"""The conversation on the screen: where the view stands, and the message that keys act on.

The view is anchored to its end once; it stays there while text comes in, until the person scrolls up. Then
nothing moves, and `FellBehind` says how much has come since.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import Click
from textual.message import Message
from textual.widget import Widget

from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.message_list import MessageList

if TYPE_CHECKING:
    from dsv4chat.app.widgets.assistant_message import AssistantMessage
    from dsv4chat.encoding import Event
    from dsv4chat.store import Branch, MessageRecord

STEP = 3  # lines a key scrolls inside a message that is higher than the view


class Transcript(VerticalScroll, can_focus=True):
    """Messages of one conversation, the last one possibly being written."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "select(-1)", "Message above", show=False, id="message_up"),
        Binding("down,j", "select(1)", "Message below", show=False, id="message_down"),
        Binding("e", "ask('edit')", "Edit", id="edit"),
        Binding("r", "ask('regenerate')", "Again", id="regenerate", tooltip="Another answer in its place"),
        Binding("c", "ask('resume')", "Continue", id="resume", tooltip="Go on with an unfinished answer"),
        Binding("left,h", "ask('back')", "‹", id="branch_back", tooltip="The branch before"),
        Binding("right,l", "ask('on')", "›", id="branch_on", tooltip="The branch after"),
        Binding("y", "ask('copy')", "Copy", id="copy_message"),
        Binding("t", "toggle", "Thinking", show=False, id="fold", tooltip="Fold or unfold its thinking"),
        Binding("i,enter", "ask('look')", "Look inside", id="look", tooltip="Into every token of an answer"),
        Binding("s", "colour", "Colours", show=False, id="colour", tooltip="Colour tokens by surprise"),
        Binding("d", "ask('delete')", "Delete", id="delete", tooltip="With all that follows"),
        Binding("u", "ask('undo')", "Undo", show=False, id="undo"),
    ]

    class FellBehind(Message):
        """`tokens` have come below what is visible since the person scrolled up; 0: the end is in sight."""

        def __init__(self, tokens: int) -> None:
            super().__init__()
            self.tokens = tokens

    class Asked(Message):
        """The person wants `action` done to a message."""

        def __init__(self, action: str, record: "MessageRecord") -> None:
            super().__init__()
            self.action = action
            self.record = record

    def __init__(self, welcome: Widget | None = None, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.messages = MessageList(welcome)
        self.selected: int | None = None
        self._behind = 0
        self._loading = False

    def compose(self) -> ComposeResult:
        yield self.messages

    def on_mount(self) -> None:
        self.anchor()

    @property
    def at_end(self) -> bool:
        """Whether the end of the conversation is in sight and stays there."""
        return not self._anchor_released

    @property
    def live(self) -> "AssistantMessage | None":
        """The answer being written."""
        return self.messages.live

    @property
    def unfolded(self) -> bool:
        """Whether the thinking of new messages is unfolded."""
        return self.messages.unfolded

    # -- what is shown ---------------------------------------------------------------------------------

    async def show(
        self,
        records: Sequence["MessageRecord"],
        branches: "Mapping[int, Branch] | None" = None,
        seen: int | None = None,
    ) -> None:
        """Show another conversation, from its end or at message `seen`."""
        self.selected = None
        at = next((at for at, record in enumerate(records) if record.id == seen), None)
        await self.messages.show(records, branches or {}, at)
        if seen is None or at is None:
            self.to_end()
        else:
            self._see(seen)

    async def change(
        self, records: Sequence["MessageRecord"], branches: "Mapping[int, Branch]", seen: int | None = None
    ) -> None:
        """Show another path of the conversation."""
        if not await self.messages.change(records, branches):
            await self.show(records, branches, seen)
        elif seen is not None:
            self._see(seen)
        else:
            self.selected = None
            self.to_end()

    async def begin(
        self,
        user: "MessageRecord | None",
        answer: "MessageRecord",
        branches: "Mapping[int, Branch] | None" = None,
    ) -> None:
        """A question and the answer that is being written to it."""
        await self.messages.begin(user, answer, branches or {})
        self.select(None)
        self.to_end()

    async def add(self, record: "MessageRecord") -> None:
        """A finished message at the end, a tool's result."""
        await self.messages.add(record)

    async def resume(self, answer: "MessageRecord") -> None:
        """The last answer is being continued."""
        await self.messages.resume(answer)
        self.select(None)
        self.to_end()

    async def feed(self, events: Sequence["Event"], tokens: int) -> None:
        """More of the answer: what the parser made of `tokens` new tokens."""
        if self.live is None:
            return
        await self.live.feed(events)
        if not self.at_end:
            self._behind += tokens
            self.post_message(self.FellBehind(self._behind))

    async def end(self, answer: "MessageRecord", rest: Sequence["Event"] = ()) -> None:
        """The answer is over."""
        live = self.messages.end(answer)
        if live is not None:
            await live.end(answer, rest)

    def set_unfolded(self, unfolded: bool) -> None:
        """Fold or unfold the thinking of all answers, also of those to come."""
        self.messages.set_unfolded(unfolded)

    # -- the selected message --------------------------------------------------------------------------

    @property
    def selected_record(self) -> "MessageRecord | None":
        """The message that keys act on: the selected one, else the last one."""
        records = self.messages.records
        at = None if self.selected is None else self.messages.position(self.selected)
        return records[at] if at is not None else records[-1] if records else None

    def select(self, message: int | None) -> None:
        """Mark a message as the one that keys act on."""
        for widget in self.messages.mounted:
            widget.remove_class("-selected")
        self.selected = message
        widget = None if message is None else self.messages.widget_of(message)
        if widget is not None:
            widget.add_class("-selected")

    def on_focus(self) -> None:
        if self.selected is None and self.messages.records:
            self.select(self.messages.records[-1].id)

    def on_click(self, event: Click) -> None:
        widget = event.widget
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

    def action_toggle(self) -> None:
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

    # -- scrolling -------------------------------------------------------------------------------------

    def to_end(self) -> None:
        """Go to the end and stay there."""
        if self.messages.complete_below:
            self.anchor()
        else:
            self._loading = True  # scrolling to the end of what is mounted is not to load any more of it
            self.call_later(self._show_end)
        self._caught_up()

    async def to_beginning(self) -> None:
        """Go to the first message."""
        if self.messages.first > 0 and self.live is None:
            await self.messages.show(self.messages.records, self.messages.branches, 0)
        while self.messages.first > 0:
            await self.messages.load_earlier()
        self.scroll_home(animate=False)

    def action_scroll_end(self) -> None:
        self.to_end()

    def release_anchor(self) -> None:
        """Textual lets go of the end at every scrolling, also one that goes nowhere: take it again then."""
        super().release_anchor()
        self.call_after_refresh(self._anchor_again)

    def _anchor_again(self) -> None:
        if not self.at_end and self.messages.complete_below and self.scroll_target_y >= self.max_scroll_y:
            self.to_end()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        below = self.messages.complete_below
        # Textual re-engages a released anchor only at a position that is the end at that very moment; with
        # text coming in, scrolling down often stops just short of the end as it is now.
        if new_value > old_value and not self.at_end and below and new_value >= self.max_scroll_y - 1:
            self.to_end()
        elif self.at_end:
            self._caught_up()
        if self._loading:
            return
        if new_value <= 0 and old_value > 0 and self.messages.first > 0:
            self._loading = True
            self.call_later(self._load, -1)
        elif new_value >= self.max_scroll_y and old_value < new_value and not below:
            self._loading = True
            self.call_later(self._load, 1)

    def _caught_up(self) -> None:
        if self._behind:
            self._behind = 0
            self.post_message(self.FellBehind(0))

    async def _show_end(self) -> None:
        try:
            await self.messages.show(self.messages.records, self.messages.branches)
            self.anchor()
        finally:
            self.call_after_refresh(self._loaded)

    async def _load(self, direction: int) -> None:
        """Mount some more of the messages above or below, leaving what is visible where it is."""
        try:
            mounted = self.messages.mounted
            still = mounted[0] if direction < 0 else mounted[-1]
            place = still.region.y
            if direction < 0:
                await self.messages.load_earlier()
            else:
                self.release_anchor()
                await self.messages.load_later()
            self.call_after_refresh(self._keep_place, still, place)
        except Exception:
            self._loading = False
            raise

    def _keep_place(self, still: Widget, place: int) -> None:
        if still.is_mounted:
            self.scroll_relative(y=still.region.y - place, animate=False, immediate=True)
        self.call_after_refresh(self._loaded)

    def _loaded(self) -> None:
        self._loading = False
        if self.selected is not None:
            self.select(self.selected)
