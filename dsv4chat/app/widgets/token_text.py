"""The tokens of an answer as text, coloured by surprise: the less probable a token, the warmer its colour."""

from collections.abc import Sequence
from typing import ClassVar

from textual.content import Content
from textual.events import Click, MouseMove
from textual.message import Message
from textual.reactive import reactive
from textual.style import Style
from textual.widget import Widget

from dsv4chat.app.styles import beside
from dsv4chat.app.token_cells import SURPRISING, TokenCell
from dsv4chat.app.widgets.drawn_lines import DrawnLines
from dsv4chat.app.widgets.settled_size import SettledSize
from dsv4chat.visible import visible

_META = "token"
_SHADES = 10
_MOST = 5.0  # nats of surprise: the warmest colour


class TokenText(SettledSize, DrawnLines, Widget):
    """`append` tokens; cursor: the number of the one that is marked, None for none."""

    DEFAULT_CSS = beside(__file__)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "token-text--calm",
        "token-text--warm",
        "token-text--hot",
        "token-text--control",
        "token-text--cursor",
    }
    cursor: reactive[int | None] = reactive(None)

    class Pointed(Message):
        """The mouse is over a token, or has clicked it."""

        def __init__(self, token: int) -> None:
            super().__init__()
            self.token = token

    def __init__(self, cells: Sequence[TokenCell] = (), *, controls: bool = False) -> None:
        super().__init__()
        self.cells: list[TokenCell] = list(cells)
        self._controls = controls
        self._width = 0
        self._rows: list[Content] = []
        self._spans: list[list[tuple[int, int, int]]] = []  # of each row: start, end, token
        # Of each line of the text: its first row, and its pieces with the tokens they belong to.
        self._lines: list[tuple[int, list[tuple[str, int]]]] = []
        self._shades: list[Style] = []

    def append(self, cells: Sequence[TokenCell]) -> None:
        """More tokens."""
        start = len(self.cells)
        self.cells += cells
        if not self._width:
            return
        before, changed = len(self._rows), self._lines[-1][0]
        self._write(start)
        self.lines_changed(changed)
        self.refresh(layout=len(self._rows) != before)

    def lines(self, width: int) -> Sequence[Content]:
        if width != self._width:
            self._width, self._rows, self._spans, self._lines = width, [], [], [(0, [])]
            self._write(0)
            self.lines_changed()
        return self._rows

    def row_of(self, token: int) -> int | None:
        """The row in which a token ends: where its word stands, if it begins with a line break."""
        for number in range(len(self._spans) - 1, -1, -1):
            if any(each == token for _, _, each in self._spans[number]):
                return number
        return None

    def beside(self, token: int, rows: int) -> int | None:
        """The other token so many rows below (or above) a token, nearest to its column."""
        row = self.row_of(token)
        if row is None:
            return None
        column = next(start for start, _, each in self._spans[row] if each == token)
        step, left, row = (1 if rows > 0 else -1), abs(rows), row + (1 if rows > 0 else -1)
        found: list[tuple[int, int, int]] = []
        while left and 0 <= row < len(self._spans):
            # A row that shows only the line break of the token itself is passed over.
            others = [span for span in self._spans[row] if span[2] != token]
            if others:
                found, left = others, left - 1
            row += step
        if not found:
            return None
        return min(found, key=lambda span: max(span[0] - column, column - span[1] + 1))[2]

    def notify_style_update(self) -> None:
        self._shades = []
        self._width = 0
        super().notify_style_update()

    def watch_cursor(self, before: int | None, after: int | None) -> None:
        if not self._width:
            return  # all of it is about to be wrapped
        for number, (_, pieces) in enumerate(self._lines):
            if any(token in (before, after) for _, token in pieces):
                self._wrap(number)
        self.lines_changed()
        self.refresh()

    def on_mouse_move(self, event: MouseMove) -> None:
        self._point(event.style.meta.get(_META))

    def on_click(self, event: Click) -> None:
        self._point(event.style.meta.get(_META))

    def _point(self, token: int | None) -> None:
        if token is not None:
            self.post_message(self.Pointed(token))

    def _write(self, start: int) -> None:
        """Wrap the tokens from number `start` on; the last line of the text is wrapped with them."""
        for number in range(start, len(self.cells)):
            cell = self.cells[number]
            if cell.control and not self._controls:
                continue
            first, *more = visible(cell.text).split("\n")
            if self._controls:
                first += "⏎" if more else "" if first else "·"
            self._lines[-1][1].append((first, number))
            for line in more:
                self._wrap(-1)
                self._lines.append((len(self._rows), [(line, number)] if line else []))
        self._wrap(-1)

    def _wrap(self, number: int) -> None:
        """Wrap one line of the text; any but the last one takes the rows it took before."""
        first, pieces = self._lines[number]
        line = Content.assemble(*((text.expandtabs(4), self._style(token)) for text, token in pieces))
        rows = line.wrap(self._width) or [Content("")]
        last = None if number in (-1, len(self._lines) - 1) else first + len(rows)
        self._rows[first:last] = rows
        self._spans[first:last] = [
            [
                (span.start, span.end, span.style.meta[_META])
                for span in row.spans
                if isinstance(span.style, Style) and _META in span.style.meta
            ]
            for row in rows
        ]

    def _style(self, number: int) -> Style:
        cell = self.cells[number]
        if number == self.cursor:
            style = self.get_visual_style("token-text--cursor")
        elif cell.control:
            style = self.get_visual_style("token-text--control", partial=True)
        else:
            if not self._shades:
                self._shades = self._make_shades()
            shade = min(_SHADES - 1, int(max(0.0, -cell.logprob) / _MOST * _SHADES))
            style = self._shades[shade]
            if cell.probability < SURPRISING:
                style += Style(underline=True)  # also where there is no colour
        return style + Style.from_meta({_META: number})

    def _make_shades(self) -> list[Style]:
        calm, warm, hot = (
            self.get_visual_style(f"token-text--{name}", partial=True).foreground
            for name in ("calm", "warm", "hot")
        )
        if calm is None or warm is None or hot is None:
            return [Style()] * _SHADES
        half = (_SHADES - 1) / 2
        return [
            Style(
                foreground=calm.blend(warm, shade / half)
                if shade <= half
                else warm.blend(hot, shade / half - 1)
            )
            for shade in range(_SHADES)
        ]
