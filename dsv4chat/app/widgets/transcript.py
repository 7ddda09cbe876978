"""The conversation on the screen: what is shown, and where the view stands.

The view is anchored to its end once; it stays there while text comes in, until the person scrolls up. Then
nothing moves, and `FellBehind` says how much has come since.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.geometry import Size
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget

from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.kept_place import KeptPlace, place_in
from dsv4chat.app.widgets.message_cursor import MessageCursor
from dsv4chat.app.widgets.message_list import MessageList
from dsv4chat.app.widgets.quick_scrollbar import QuickScrollBar
from dsv4chat.app.widgets.settled_size import SettledSize

if TYPE_CHECKING:
    from dsv4chat.app.widgets.assistant_message import AssistantMessage
    from dsv4chat.encoding import Event
    from dsv4chat.store import Branch, MessageRecord


_HELD = 1.0  # seconds after a change of heights in which they all have changed


class Transcript(SettledSize, MessageCursor, can_focus=True):
    """Messages of one conversation, the last one possibly being written."""

    DEFAULT_CSS = beside(__file__)

    class FellBehind(Message):
        """`tokens` have come below what is visible since the person scrolled up; 0: the end is in sight."""

        def __init__(self, tokens: int) -> None:
            super().__init__()
            self.tokens = tokens

    def __init__(self, welcome: Widget | None = None, *, id: str | None = None) -> None:
        super().__init__(MessageList(welcome), id=id)
        self._behind = 0
        self._loading = False
        self._place: KeptPlace | None = None
        self._held: tuple[KeptPlace, bool] | None = None
        self._release: Timer | None = None

    def compose(self) -> ComposeResult:
        yield self.messages

    def on_mount(self) -> None:
        self.anchor()

    @property
    def vertical_scrollbar(self) -> QuickScrollBar:
        bar = self._vertical_scrollbar
        if not isinstance(bar, QuickScrollBar):
            bar = self._vertical_scrollbar = QuickScrollBar(
                name="vertical", thickness=self.scrollbar_size_vertical
            )
            bar.display = False
            self.app._start_widget(self, bar)
        return bar

    def _scroll_update(self, virtual_size: Size) -> None:
        bar = self.vertical_scrollbar
        bar.with_layout = True
        super()._scroll_update(virtual_size)
        bar.with_layout = False

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
        """A question and the answer that is being written to it; one without a question moves no view."""
        follow = user is not None or self.at_end
        await self.messages.begin(user, answer, branches or {})
        if follow:
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
        place = None if self.at_end else self._seen()
        self.messages.set_unfolded(unfolded)
        if place is not None:
            self._hold(place, grows_above=True)

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
        self._let_go()
        self.call_after_refresh(self._anchor_again)

    def _anchor_again(self) -> None:
        if not self.at_end and self.messages.complete_below and self.scroll_target_y >= self.max_scroll_y:
            self.to_end()

    def _size_updated(
        self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True
    ) -> bool:
        if self.outer_size.width != size.width and self._place is not None and not self.at_end:
            self._hold(self._place, grows_above=False)
        rows = self._moved()
        if rows < 0:  # before there is less to scroll: the end is not to come into sight
            self._scroll_by(rows)
        updated = super()._size_updated(size, virtual_size, container_size, layout)
        if rows > 0:
            self._scroll_by(rows)
        if self._held is None:
            self._note_place()  # of heights as they are now
        return updated

    def _scroll_by(self, rows: int) -> None:
        self.scroll_to(y=self.scroll_y + rows, animate=False, immediate=True, release_anchor=False)

    def _seen(self) -> KeptPlace | None:
        width, height = self.scrollable_content_region.size
        return place_in(self.messages.places(width), round(self.scroll_y), height)

    def _note_place(self) -> None:
        self._place = None if self.at_end else self._seen()

    def _hold(self, place: KeptPlace, *, grows_above: bool) -> None:
        """Keep what is seen in place while messages get other heights, one after the other."""
        if self._release is not None:
            self._release.stop()
        self._held, self._release = (place, grows_above), self.set_timer(_HELD, self._let_go)

    def _let_go(self) -> None:
        self._held = None

    def _moved(self) -> int:
        """By how many rows what is held in place has moved."""
        if self._held is None or self.at_end:
            return 0
        place, grows_above = self._held
        region = self.messages.places(self.scrollable_content_region.width).get(place.message)
        return place.moved(region, round(self.scroll_y), grows_above=grows_above) if region else 0

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.call_after_refresh(self._note_place)
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
