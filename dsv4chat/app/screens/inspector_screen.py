"""A look inside an answer: tokens coloured by surprise, and what is known about the one at the cursor."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll

from dsv4chat.app.screens.over_chat import OverChat
from dsv4chat.app.styles import beside
from dsv4chat.app.token_cells import SURPRISING, TokenCell
from dsv4chat.app.widgets.key_line import KeyLine
from dsv4chat.app.widgets.token_panel import TokenPanel
from dsv4chat.app.widgets.token_text import TokenText


class InspectorScreen(OverChat[None]):
    """Moves a cursor over `cells` by keys and mouse; left by Esc."""

    DEFAULT_CSS = beside(__file__)
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (80, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "move(-1)", "Token", key_display="← →", priority=True, id="token_left"),
        Binding("right,l", "move(1)", "Next token", show=False, priority=True, id="token_right"),
        Binding("up,k", "rows(-1)", "Line", key_display="↑ ↓", priority=True, id="token_up"),
        Binding("down,j", "rows(1)", "Line below", show=False, priority=True, id="token_down"),
        Binding("pageup", "rows(-10)", "Page up", show=False, priority=True, id="token_page_up"),
        Binding("pagedown", "rows(10)", "Page down", show=False, priority=True, id="token_page_down"),
        Binding("home", "to(0)", "First token", show=False, priority=True, id="token_first"),
        Binding("end", "to(-1)", "Last token", show=False, priority=True, id="token_last"),
        Binding("n", "surprise(1)", "Next surprise", priority=True, id="token_surprise"),
        Binding("p", "surprise(-1)", "Surprise before", show=False, priority=True, id="token_before"),
        Binding("escape,q,i,ctrl+c", "leave", "Back", key_display="Esc", priority=True, id="token_leave"),
    ]

    def __init__(self, cells: Sequence[TokenCell]) -> None:
        super().__init__()
        self._cells = list(cells)
        self._text = TokenText(self._cells, controls=True)
        self._panel = TokenPanel(self._cells)

    def compose(self) -> ComposeResult:
        with Horizontal(id="box"):
            with VerticalScroll(id="text"):
                yield self._text
            yield self._panel
        yield KeyLine()

    def on_mount(self) -> None:
        first = next((n for n, cell in enumerate(self._cells) if cell.kind == "answer"), 0)
        self.call_after_refresh(self.go_to, first)

    @property
    def cursor(self) -> int:
        """The number of the token that is shown."""
        return self._text.cursor or 0

    def go_to(self, token: int) -> None:
        """Put the cursor on a token."""
        if not self._cells:
            return
        token = max(0, min(len(self._cells) - 1, token))
        self._text.cursor = token
        self._panel.show(self._cells, token)
        row = self._text.row_of(token)
        box = self.query_one("#text", VerticalScroll)
        if row is not None and not box.scroll_y <= row < box.scroll_y + box.size.height:
            box.scroll_to(y=max(0, row - box.size.height // 2), animate=False)

    def action_move(self, step: int) -> None:
        self.go_to(self.cursor + step)

    def action_rows(self, rows: int) -> None:
        token = self._text.beside(self.cursor, rows)
        if token is not None:
            self.go_to(token)

    def action_to(self, token: int) -> None:
        self.go_to(token if token >= 0 else len(self._cells) + token)

    def action_surprise(self, step: int) -> None:
        token = self.cursor + step
        while 0 <= token < len(self._cells):
            if self._cells[token].probability < SURPRISING:
                self.go_to(token)
                return
            token += step
        self.notify("There is no token less probable than 10 % further on.", markup=False)

    @on(TokenText.Pointed)
    def _pointed(self, event: TokenText.Pointed) -> None:
        self.go_to(event.token)

    def action_leave(self) -> None:
        self.dismiss(None)
