"""The thinking of an answer: one live line, and on demand the text below it, in a box of bounded height."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static

from dsv4chat.app.styles import beside
from dsv4chat.app.token_cells import TokenCell
from dsv4chat.app.widgets.growing_text import GrowingText
from dsv4chat.app.widgets.token_text import TokenText
from dsv4chat.app.wording import plural, seconds


class ThinkingView(Vertical):
    """Thinking of `tokens` tokens in `spent` seconds. While it is folded, its text is in no widget."""

    DEFAULT_CSS = beside(__file__)
    BLANK = True  # nothing of its own is drawn, which Textual then does at no cost

    unfolded: reactive[bool] = reactive(False)

    class Toggled(Message):
        """The person wants it folded or unfolded."""

        def __init__(self, view: "ThinkingView") -> None:
            super().__init__()
            self.view = view

        @property
        def control(self) -> "ThinkingView":
            return self.view

    def __init__(
        self,
        text: str = "",
        *,
        tokens: int = 0,
        spent: float = 0.0,
        live: bool = False,
        unfolded: bool = False,
    ) -> None:
        super().__init__()
        self._parts = [text] if text else []
        self._tokens = tokens
        self._spent = spent
        self._live = live
        self._header = Static("", markup=False, classes="header")
        self._body: VerticalScroll | None = None
        self._text: GrowingText | None = None
        self._cells: list[TokenCell] | None = None
        self._tokens_shown: TokenText | None = None
        self._stale = False  # whether the body shows what was to be shown before
        self.set_reactive(ThinkingView.unfolded, unfolded)

    def compose(self) -> ComposeResult:
        yield self._header

    async def on_mount(self) -> None:
        self._show_header()
        if self.unfolded:
            await self._unfold()

    @property
    def text(self) -> str:
        """What was thought so far."""
        return "".join(self._parts)

    def add(self, text: str) -> None:
        """More of the thinking; only an unfolded view writes it to the screen."""
        self._parts.append(text)
        if self._text is not None:
            self._text.append(text)

    def add_cells(self, cells: Sequence[TokenCell]) -> None:
        """The tokens behind what `add` is given; drawn if they are what is shown."""
        if self._cells is not None:
            self._cells += cells
            if self._tokens_shown is not None:
                self._tokens_shown.append(cells)

    def show_tokens(self, cells: Sequence[TokenCell] | None) -> None:
        """Show tokens coloured by surprise where the text is shown; None: the text again."""
        self._cells = None if cells is None else list(cells)
        self._stale = True
        if self._body is not None:
            self.run_worker(self._refill(), exclusive=True)

    def count(self, tokens: int, spent: float) -> None:
        """`tokens` more tokens, which took `spent` seconds."""
        self._tokens += tokens
        self._spent += spent
        self._show_header()

    def finish(self) -> None:
        """The thinking is over."""
        self._live = False
        self._show_header()

    def on_click(self, event: Click) -> None:
        if event.widget is self._header:
            event.stop()
            self.post_message(self.Toggled(self))

    async def watch_unfolded(self, unfolded: bool) -> None:
        if not self.is_mounted:
            return
        if unfolded and self._body is None:
            await self._unfold()
        elif not unfolded and self._body is not None:
            body, self._body, self._text, self._tokens_shown = self._body, None, None, None
            await body.remove()
        self._show_header()

    async def _unfold(self) -> None:
        body = self._body = VerticalScroll(self._filling(), can_focus=True)
        await self.mount(body)
        if body is self._body:  # not folded meanwhile
            body.anchor()
            await self._refill()

    async def _refill(self) -> None:
        body = self._body
        if not self._stale or body is None or not body.is_attached:
            return  # not attached: it is being mounted, and filled anew then, or is going away
        with self.app.batch_update():
            await body.remove_children()
            if body.is_attached:
                await body.mount(self._filling())

    def _filling(self) -> Widget:
        self._stale = False
        if self._cells is None:
            self._text, self._tokens_shown = GrowingText(self.text), None
            return self._text
        self._text, self._tokens_shown = None, TokenText(self._cells)
        return self._tokens_shown

    def _show_header(self) -> None:
        mark = "▾" if self.unfolded else "▸"
        figures = [seconds(self._spent)] if self._tokens else []
        if self._tokens:
            figures.append(plural(self._tokens, "token"))
        verb = "Thinking" if self._live else "Thought"
        line = " · ".join([f"{mark} {verb}", *figures])
        self.set_class(self._live, "-live")
        # The line never changes its height, so nothing has to be laid out again.
        self._header.update(Content(line), layout=False)
