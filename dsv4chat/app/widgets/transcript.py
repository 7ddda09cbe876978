"""The conversation on the screen: about twenty messages as widgets, the rest as data until scrolled to.

The view is anchored to its end once; it stays there while text comes in, until the person scrolls up. Then
nothing moves, and `FellBehind` says how much has come since.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from dsv4chat.app.styles import beside
from dsv4chat.app.wording import plural

if TYPE_CHECKING:
    # The widgets of messages bring Markdown and the history along: not before the first paint.
    from dsv4chat.app.widgets.assistant_message import AssistantMessage
    from dsv4chat.encoding import Event
    from dsv4chat.store import MessageRecord

FIRST = 8  # messages mounted when a conversation is opened
MORE = 8  # ... and each time its top is reached
MOST = 24  # at the end of the conversation, older widgets than this many are given up


class Transcript(VerticalScroll, can_focus=True):
    """Messages of one conversation, the last one possibly being written."""

    DEFAULT_CSS = beside(__file__)

    class FellBehind(Message):
        """`tokens` have come below what is visible since the person scrolled up; 0: the end is in sight."""

        def __init__(self, tokens: int) -> None:
            super().__init__()
            self.tokens = tokens

    def __init__(self, welcome: Widget | None = None, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.unfolded = False
        self._welcome = welcome
        self._records: list[MessageRecord] = []
        self._first = 0
        self._earlier = Static("", markup=False, classes="earlier")
        # At least as high as the view: an anchored view would push a short conversation down to its end.
        self._list = Vertical(classes="list")
        self._live: AssistantMessage | None = None
        self._behind = 0
        self._loading = False

    def compose(self) -> ComposeResult:
        with self._list:
            if self._welcome is not None:
                yield self._welcome
            yield self._earlier

    def on_mount(self) -> None:
        self._earlier.display = False
        self.anchor()

    @property
    def at_end(self) -> bool:
        """Whether the end of the conversation is in sight and stays there."""
        return not self._anchor_released

    @property
    def live(self) -> "AssistantMessage | None":
        """The answer being written."""
        return self._live

    async def show(self, records: Sequence["MessageRecord"]) -> None:
        """Show another conversation, from its end."""
        self._records = list(records)
        self._first = max(0, len(self._records) - FIRST)
        self._live = None
        with self.app.batch_update():
            if self._welcome is not None:
                self._welcome.display = not self._records
            await self._list.remove_children(self._mounted)
            await self._list.mount(*map(self._widget, self._records[self._first :]))
            self._show_earlier()
        self.to_end()

    async def begin(self, user: "MessageRecord | None", answer: "MessageRecord") -> None:
        """A question and the answer that is being written to it."""
        from dsv4chat.app.widgets.messages import new_turn

        new, self._live = new_turn(user, answer, unfolded=self.unfolded)
        if user is not None:
            self._records.append(user)
        self._records.append(answer)
        if self._welcome is not None:
            self._welcome.display = False
        with self.app.batch_update():
            await self._list.mount(*new)
        self.to_end()
        await self._give_up_oldest()

    async def feed(self, events: Sequence["Event"], tokens: int) -> None:
        """More of the answer: what the parser made of `tokens` new tokens."""
        if self._live is None:
            return
        await self._live.feed(events)
        if not self.at_end:
            self._behind += tokens
            self.post_message(self.FellBehind(self._behind))

    async def end(self, answer: "MessageRecord", rest: Sequence["Event"] = ()) -> None:
        """The answer is over."""
        live, self._live = self._live, None
        if self._records and self._records[-1].id == answer.id:
            self._records[-1] = answer
        if live is not None:
            await live.end(answer, rest)

    def to_end(self) -> None:
        """Go to the end and stay there."""
        self.anchor()
        self._caught_up()

    def action_scroll_end(self) -> None:
        self.to_end()

    def set_unfolded(self, unfolded: bool) -> None:
        """Fold or unfold the thinking of all answers, also of those to come."""
        from dsv4chat.app.widgets.messages import set_unfolded

        self.unfolded = unfolded
        for message in self._mounted:
            set_unfolded(message, unfolded)

    def release_anchor(self) -> None:
        """Textual lets go of the end at every scrolling, also one that goes nowhere: take it again then."""
        super().release_anchor()
        self.call_after_refresh(self._anchor_again)

    def _anchor_again(self) -> None:
        if not self.at_end and self.scroll_target_y >= self.max_scroll_y:
            self.to_end()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        # Textual re-engages a released anchor only at a position that is the end at that very moment; with
        # text coming in, scrolling down often stops just short of the end as it is now.
        if new_value > old_value and not self.at_end and new_value >= self.max_scroll_y - 1:
            self.to_end()
        elif self.at_end:
            self._caught_up()
        if new_value <= 0 and old_value > 0 and self._first > 0 and not self._loading:
            self._loading = True
            self.call_later(self._load_earlier)

    def _caught_up(self) -> None:
        if self._behind:
            self._behind = 0
            self.post_message(self.FellBehind(0))

    async def _load_earlier(self) -> None:
        """Mount some more of the older messages above, leaving what is visible where it is."""
        try:
            first = max(0, self._first - MORE)
            widgets = [self._widget(record) for record in self._records[first : self._first]]
            height = self.virtual_size.height
            with self.app.batch_update():
                await self._list.mount(*widgets, after=self._earlier)
                self._first = first
                self._show_earlier()
            self.call_after_refresh(self._keep_place, height)
        except Exception:
            self._loading = False
            raise

    def _keep_place(self, height: int) -> None:
        self.scroll_to(y=self.scroll_y + self.virtual_size.height - height, animate=False, immediate=True)
        self._loading = False

    async def _give_up_oldest(self) -> None:
        surplus = len(self._mounted) - MOST
        if surplus > 0:
            with self.app.batch_update():
                await self._list.remove_children(self._mounted[:surplus])
                self._first += surplus
                self._show_earlier()

    def _show_earlier(self) -> None:
        self._earlier.display = self._first > 0
        self._earlier.update(Content(f"↑ {plural(self._first, 'earlier message')}"))

    def _widget(self, record: "MessageRecord") -> Widget:
        from dsv4chat.app.widgets.messages import message_widget

        return message_widget(record, unfolded=self.unfolded)

    @property
    def _mounted(self) -> list[Widget]:
        return [child for child in self._list.children if child not in (self._welcome, self._earlier)]
