"""The messages of the shown path: all of them as records, about twenty as widgets.

`records[first:last]` are mounted. Scrolling up mounts older ones and gives up those far below, and the other
way round; an answer that is being written is never given up.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Region, Size
from textual.widget import Widget
from textual.widgets import Static

from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.settled_size import SettledColumn
from dsv4chat.app.wording import plural

if TYPE_CHECKING:
    # The widgets of messages bring Markdown and the history along: not before the first paint.
    from dsv4chat.app.widgets.assistant_message import AssistantMessage
    from dsv4chat.app.widgets.messages import ReadCells
    from dsv4chat.store import Branch, MessageRecord

FIRST = 8  # messages mounted when a conversation is opened
MORE = 8  # ... and each time an end of them is reached
MOST = 24  # more widgets than this are given up at the other end


class MessageList(SettledColumn, Vertical):
    """Changes what is mounted; where the view stands then is its parent's concern."""

    DEFAULT_CSS = beside(__file__)
    BLANK = True  # nothing of its own is drawn, which Textual then does at no cost

    def __init__(self, welcome: Widget | None = None) -> None:
        super().__init__()
        self.records: list[MessageRecord] = []
        self.branches: Mapping[int, Branch] = {}
        self.first = self.last = 0
        self.unfolded = self.coloured = False
        self.read_cells: ReadCells | None = None
        self.live: AssistantMessage | None = None
        self._welcome = welcome
        self._earlier = Static("", markup=False, classes="elsewhere")
        self._later = Static("", markup=False, classes="elsewhere")

    def compose(self) -> ComposeResult:
        if self._welcome is not None:
            yield self._welcome
        yield self._earlier
        yield self._later

    def on_mount(self) -> None:
        self._tell()

    @property
    def mounted(self) -> list[Widget]:
        """The widgets of `records[first:last]`."""
        return [child for child in self.children if child not in self._lines]

    def places(self, width: int) -> dict[Widget, Region]:
        """Where they are in the list, if it is so wide."""
        placed = self.arrange(Size(width, 0)).placements
        return {each.widget: each.region for each in placed if each.widget not in self._lines}

    @property
    def _lines(self) -> tuple[Widget | None, ...]:
        return (self._welcome, self._earlier, self._later)

    @property
    def complete_below(self) -> bool:
        """Whether the last message is mounted."""
        return self.last == len(self.records)

    def widget_of(self, message: int) -> Widget | None:
        """The widget of a message, if it is mounted."""
        from dsv4chat.app.widgets.messages import as_message

        return next((widget for widget in self.mounted if as_message(widget).record.id == message), None)

    def position(self, message: int) -> int | None:
        """Which of the records a message is."""
        return next((at for at, record in enumerate(self.records) if record.id == message), None)

    async def show(
        self,
        records: Sequence["MessageRecord"],
        branches: Mapping[int, "Branch"],
        at: int | None = None,
    ) -> None:
        """Show other messages, around number `at` or from the end; what was live is forgotten."""
        self.records, self.branches, self.live = list(records), branches, None
        self.last = len(self.records) if at is None else min(len(self.records), at + FIRST)
        self.first = max(0, min(self.last, len(self.records) if at is None else at + 1) - FIRST)
        with self.app.batch_update():
            await self.remove_children(self.mounted)
            await self._mount_between(self.first, self.last, self._later)
            self._tell()

    async def change(self, records: Sequence["MessageRecord"], branches: Mapping[int, "Branch"]) -> bool:
        """Show another path of the same conversation; False if that takes showing all of it anew."""
        same = 0
        for old, new in zip(self.records, records, strict=False):
            if (old.id, old.state) != (new.id, new.state):
                break
            same += 1
        if self.live is not None or same < self.first or len(records) - same > FIRST or self.last < same:
            return False
        with self.app.batch_update():
            await self.remove_children(self.mounted[same - self.first :])
            self.records, self.branches, self.last = list(records), branches, len(records)
            await self._mount_between(same, self.last, self._later)
            self._show_branches()
            self._tell()
        return True

    async def begin(
        self,
        user: "MessageRecord | None",
        answer: "MessageRecord",
        branches: Mapping[int, "Branch"],
    ) -> None:
        """A question, if there is a new one, and the answer that is being written to it."""
        new = [answer] if user is None else [user, answer]
        if not self.complete_below:
            await self.show(self.records, self.branches)
        self.branches = branches
        start = len(self.records)
        self.records += new
        self.last = len(self.records)
        with self.app.batch_update():
            await self._mount_between(start, self.last, self._later, live=True)
            self._show_branches()
            await self._give_up_above()
            self._tell()

    async def add(self, record: "MessageRecord") -> None:
        """A finished message at the end."""
        if not self.complete_below:
            await self.show(self.records, self.branches)
        self.records.append(record)
        self.last = len(self.records)
        with self.app.batch_update():
            await self._mount_between(self.last - 1, self.last, self._later)
            await self._give_up_above()
            self._tell()

    async def resume(self, answer: "MessageRecord") -> None:
        """The last message is being written again."""
        if not self.complete_below:
            await self.show(self.records, self.branches)
        self.records[-1] = answer
        with self.app.batch_update():
            await self.mounted[-1].remove()
            await self._mount_between(self.last - 1, self.last, self._later, live=True)

    def end(self, answer: "MessageRecord") -> "AssistantMessage | None":
        """The answer is over; returns its widget if it is on the screen."""
        live, self.live = self.live, None
        if self.records and self.records[-1].id == answer.id:
            self.records[-1] = answer
        return live

    async def load_earlier(self) -> None:
        """Mount some of the older messages, give up surplus ones below."""
        start = max(0, self.first - MORE)
        with self.app.batch_update():
            await self._mount_between(start, self.first, None)
            self.first = start
            surplus = len(self.mounted) - MOST
            if surplus > 0 and self.live is None:
                await self.remove_children(self.mounted[-surplus:])
                self.last -= surplus
            self._tell()

    async def load_later(self) -> None:
        """Mount some of the newer messages, give up surplus ones above."""
        end = min(len(self.records), self.last + MORE)
        with self.app.batch_update():
            await self._mount_between(self.last, end, self._later)
            self.last = end
            await self._give_up_above()
            self._tell()

    def set_unfolded(self, unfolded: bool) -> None:
        """Fold or unfold the thinking of all answers, also of those to come."""
        from dsv4chat.app.widgets.messages import set_unfolded

        self.unfolded = unfolded
        for message in self.mounted:
            set_unfolded(message, unfolded)

    async def _give_up_above(self) -> None:
        surplus = len(self.mounted) - MOST
        if surplus > 0:
            await self.remove_children(self.mounted[:surplus])
            self.first += surplus

    async def _mount_between(
        self, start: int, end: int, before: Widget | None, *, live: bool = False
    ) -> None:
        """Mount `records[start:end]`, the last one live, before a widget or as the first ones."""
        from dsv4chat.app.widgets.assistant_message import AssistantMessage
        from dsv4chat.app.widgets.messages import message_widget

        widgets = [
            message_widget(
                record,
                self.branches.get(record.id),
                unfolded=self.unfolded,
                coloured=self.coloured,
                live=live and number == end - 1,
            )
            for number, record in enumerate(self.records[start:end], start)
        ]
        if live and isinstance(widgets[-1], AssistantMessage):
            self.live = widgets[-1]
        if before is None:
            await self.mount(*widgets, after=self._earlier)
        else:
            await self.mount(*widgets, before=before)
        if self.coloured:
            self._colour([widget for widget in widgets if widget is not self.live])

    def set_coloured(self, coloured: bool) -> None:
        """Colour tokens by surprise, also of answers to come, or no more."""
        self.coloured = coloured
        self._colour(self.mounted)

    def _colour(self, widgets: Sequence[Widget]) -> None:
        from dsv4chat.app.widgets.messages import set_coloured

        read = self.read_cells
        if read is not None:
            for widget in widgets:
                self.run_worker(set_coloured(widget, self.coloured, read), group="colours")

    def _show_branches(self) -> None:
        from dsv4chat.app.widgets.messages import as_message

        for widget in self.mounted:
            message = as_message(widget)
            message.set_branch(self.branches.get(message.record.id))

    def _tell(self) -> None:
        """How many messages are above and below those that are mounted."""
        if self._welcome is not None:
            self._welcome.display = not self.records
        for line, count, words in (
            (self._earlier, self.first, "↑ {}"),
            (self._later, len(self.records) - self.last, "↓ {}"),
        ):
            line.display = count > 0
            kind = "earlier message" if line is self._earlier else "later message"
            line.update(Content(words.format(plural(count, kind))))
