"""The end of the engine's log."""

from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll

from dsv4chat.app.screens.over_chat import OverChat
from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.growing_text import GrowingText
from dsv4chat.logs import log_tail

_LINES = 500
_BYTES = 200_000


class LogScreen(OverChat[None]):
    """Reads the log when it is opened; left by Esc, F4 or Enter."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f4,enter,q,ctrl+c", "leave", "Leave", show=False, priority=True)
    ]

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def compose(self) -> ComposeResult:
        lines = log_tail(self._path, _LINES, _BYTES)
        with VerticalScroll(id="box") as box:
            box.border_title = self._path.name
            box.border_subtitle = str(self._path.parent)
            yield GrowingText("\n".join(lines) if lines else "The log is empty.")

    def on_mount(self) -> None:
        self.query_one("#box").scroll_end(animate=False)

    def action_leave(self) -> None:
        self.dismiss(None)
