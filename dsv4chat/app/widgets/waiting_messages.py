"""Messages that were sent before they could be answered: shown above the input, sent in order."""

from collections import deque

from textual.content import Content
from textual.widgets import Static

from dsv4chat.app.styles import beside
from dsv4chat.visible import visible

SHOWN = 3  # messages, one line each


class WaitingMessages(Static):
    """Hidden while nothing waits."""

    DEFAULT_CSS = beside(__file__)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("", markup=False, id=id)
        self._texts: deque[str] = deque()
        self._reason = ""

    def on_mount(self) -> None:
        self._show()

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def text(self) -> str:
        """All of them as one text."""
        return "\n\n".join(self._texts)

    def add(self, text: str, reason: str) -> None:
        """One more; `reason`: when it will be sent, as "after this answer"."""
        self._texts.append(text)
        self._reason = reason
        self._show()

    def next(self) -> str | None:
        """The first one, which waits no more."""
        text = self._texts.popleft() if self._texts else None
        self._show()
        return text

    def put_first(self, text: str) -> None:
        """It could not be sent after all."""
        self._texts.appendleft(text)
        self._show()

    def take_back(self) -> str | None:
        """The last one, to be changed."""
        text = self._texts.pop() if self._texts else None
        self._show()
        return text

    def take_all(self) -> str:
        """All of them as one text; nothing waits any more."""
        text = self.text
        self._texts.clear()
        self._show()
        return text

    def _show(self) -> None:
        self.display = bool(self._texts)
        lines = [Content("› " + " ".join(visible(text).split())) for text in list(self._texts)[:SHOWN]]
        more = len(self._texts) - SHOWN
        tail = f"and {more} more, " if more > 0 else ""
        hint = Content(f"  {tail}sent {self._reason} · ↑ takes the last one back").stylize("$foreground 55%")
        self.update(Content("\n").join([*lines, hint]))
