"""What could be meant by the command being typed, above the input."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from dsv4chat.app.styles import beside


class CommandList(OptionList, can_focus=False):
    """Shown while it has lines. The input keeps the focus and moves the mark."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "hide", show=False)]

    class Chosen(Message):
        """A line was clicked."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self) -> None:
        super().__init__(compact=True, markup=False)
        self._texts: list[str] = []

    def on_mount(self) -> None:
        self.display = False

    def show(self, lines: Sequence[tuple[str, str]]) -> None:
        """Show these (text, words); none hides the list. The mark stays on the text it was on."""
        before = self.marked
        self._texts = [text for text, _ in lines]
        self.display = bool(lines)
        self.clear_options()
        width = max((len(text) for text in self._texts), default=0) + 2
        self.add_options(
            Option(Content.assemble(text.ljust(width), (words, "$foreground 55%"))) for text, words in lines
        )
        if lines:
            self.highlighted = self._texts.index(before) if before in self._texts else 0

    @property
    def marked(self) -> str | None:
        """The text that is marked, None while the list is hidden."""
        if not self.display or self.highlighted is None or self.highlighted >= len(self._texts):
            return None
        return self._texts[self.highlighted]

    def move(self, step: int) -> None:
        """Move the mark, around the ends too."""
        if self.highlighted is not None and self._texts:
            self.highlighted = (self.highlighted + step) % len(self._texts)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.post_message(self.Chosen(self._texts[event.option_index]))
