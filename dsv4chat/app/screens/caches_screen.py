"""Where the caches of conversations are: with the model, in main memory, on disk."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from dsv4chat.app.screens.over_chat import OverChat
from dsv4chat.app.styles import beside
from dsv4chat.app.wording import size
from dsv4chat.runtime.protocol_conversations import ConversationCache
from dsv4chat.visible import visible

_TITLE = 34  # cells
_HEAD = ("conversation", "tokens", "branches", "in use", "memory", "disk")


class CachesScreen(OverChat[None]):
    """caches: as they were last measured. titles: of conversations by their number. folder: of saved ones."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q,ctrl+c", "leave", "Leave", show=False, priority=True)
    ]

    def __init__(
        self, caches: Sequence[ConversationCache], titles: Mapping[int, str], folder: str | None
    ) -> None:
        super().__init__()
        self._caches = caches
        self._titles = titles
        self._folder = folder

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="box") as box:
            box.border_title = "Caches of conversations"
            box.border_subtitle = self._folder or "nothing is saved"
            yield Static(Content("\n".join(self.lines())), markup=False)

    def lines(self) -> list[str]:
        """A line for each conversation that was used since the engine was started, the last one first."""
        if not self._caches:
            return ["No conversation was used since the engine was started."]
        rows = [
            (
                self._title(cache.conversation),
                f"{cache.tokens:,}",
                str(cache.branches),
                _bytes(cache.live_bytes),
                _bytes(cache.memory_bytes),
                _bytes(cache.disk_bytes),
            )
            for cache in self._caches
        ]
        return [_line(_HEAD), *map(_line, rows)]

    def action_leave(self) -> None:
        self.dismiss(None)

    def _title(self, conversation: str) -> str:
        title = self._titles.get(int(conversation), "") if conversation.isdecimal() else conversation
        return visible(title) or "(no title)"


def _bytes(count: int) -> str:
    return size(count) if count else "–"


def _line(cells: Sequence[str]) -> str:
    title, *numbers = cells
    shown = title if len(title) <= _TITLE else title[: _TITLE - 1] + "…"
    return f"{shown:<{_TITLE}}" + "".join(f"{number:>10}" for number in numbers)
