"""Plain text that grows at its end at little cost: only its last line is wrapped and drawn again."""

from collections.abc import Sequence

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.drawn_lines import DrawnLines
from dsv4chat.app.widgets.settled_size import SettledSize
from dsv4chat.visible import visible

_TAB = 8


class GrowingText(SettledSize, DrawnLines, Widget):
    """Shows a text as it is, control characters made visible. `append` may be called before it is mounted.

    A line break at the very end is not shown as an empty line before there is text on it.
    """

    DEFAULT_CSS = beside(__file__)

    def __init__(self, text: str = "", *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._text: list[str] = []
        self._width = 0
        self._rows: list[Content] = []
        self._open = ""  # text of the last row, which more text may change
        self._break = False  # whether a line break came last
        if text:
            self.append(text)

    @property
    def source(self) -> str:
        """The whole text."""
        return "".join(self._text)

    def append(self, text: str) -> None:
        """Add to the end."""
        if not text:
            return
        self._text.append(text)
        if not self._width:
            return
        before = len(self._rows)
        self._wrap(text)
        self.lines_changed(max(0, before - 1))
        self.refresh(layout=len(self._rows) != before)

    async def clear(self) -> None:
        """Remove all text."""
        self._text.clear()
        self._begin(self._width)
        self.lines_changed()
        self.refresh(layout=True)

    def lines(self, width: int) -> Sequence[Content]:
        if width != self._width:
            self._begin(width)
            self._wrap("".join(self._text))
            self.lines_changed()
        return self._rows

    def _begin(self, width: int) -> None:
        self._width, self._rows, self._open, self._break = width, [], "", False

    def _wrap(self, text: str) -> None:
        """Wrap more text. Rows are filled from the left, so that only the last one can still change."""
        if self._break:
            text = "\n" + text
        self._break = text.endswith("\n")
        first, *more = visible(text.removesuffix("\n") if self._break else text).split("\n")
        self._fill(self._open + first)
        for line in more:
            self._rows.append(Content(""))
            self._open = ""
            self._fill(line)

    def _fill(self, line: str) -> None:
        """Make `line` the last row and as many after it as it takes."""
        if "\t" in line:
            line = _expanded(line)
        rows = [Content(line)] if cell_len(line) <= self._width else Content(line).wrap(self._width)
        self._rows[-1:] = rows
        self._open = rows[-1].plain if len(rows) > 1 else line


def _expanded(line: str) -> str:
    out, *parts = line.split("\t")
    for part in parts:
        out += " " * (_TAB - cell_len(out) % _TAB) + part
    return out
