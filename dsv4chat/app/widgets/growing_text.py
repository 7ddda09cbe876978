"""Plain text that grows at its end at little cost: only the last piece is laid out again."""

from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from dsv4chat.app.styles import beside
from dsv4chat.visible import visible

PIECE = 2000  # characters after which the next line starts a new piece
LONGEST = 8000  # ... and after which a line without an end is cut at a space, or anywhere


class GrowingText(Vertical):
    """Shows a text as it is, control characters made visible. `append` may be called before it is mounted."""

    DEFAULT_CSS = beside(__file__)

    def __init__(self, text: str = "", *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._last = ""
        self._piece = Static(Content(""), markup=False)
        self._rows = 0  # lines of the last piece as it is laid out; 0: not known
        self._pending: list[Static] = [self._piece]
        if text:
            self.append(text)

    def on_mount(self) -> None:
        pieces, self._pending = self._pending, []
        self.mount(*pieces)

    def append(self, text: str) -> None:
        """Add to the end."""
        self._last += text
        while len(self._last) > PIECE:
            cut = self._last.find("\n", PIECE, LONGEST)
            if cut < 0:
                if len(self._last) <= LONGEST:
                    break
                cut = self._last.rfind(" ", PIECE, LONGEST)
            after = cut + 1
            if cut < 0:
                cut = after = LONGEST
            self._show(self._last[:cut])
            self._last = self._last[after:]
            self._piece, self._rows = Static(Content(""), markup=False), 0
            if self.is_mounted:
                self.mount(self._piece)
            else:
                self._pending.append(self._piece)
        # A line break at the very end would show as an empty line before there is text on it.
        self._show(self._last.removesuffix("\n"))

    def _show(self, text: str) -> None:
        """Text of the last piece. The screen is laid out anew only when it takes another line."""
        content = Content(visible(text))
        width = self._piece.content_size.width
        rows = len(content.wrap(width)) if width else 0
        self._piece.update(content, layout=not rows or rows != self._rows)
        self._rows = rows

    async def clear(self) -> None:
        """Remove all text."""
        self._last = ""
        self._piece, self._rows = Static(Content(""), markup=False), 0
        if self.is_mounted:
            await self.remove_children()
            await self.mount(self._piece)
        else:
            self._pending = [self._piece]
