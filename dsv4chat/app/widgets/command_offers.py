"""What could be meant by the command being typed, above the input."""

from collections.abc import Sequence

from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from dsv4chat.app.styles import beside


class CommandOffers(OptionList, can_focus=False):
    """Shown while it has lines. The input keeps the focus and hands some keys on.

    Tab takes the marked text into the input, Enter takes it and sends it, if it is complete.
    """

    DEFAULT_CSS = beside(__file__)

    class Chosen(Message):
        """A text was taken; `sent`: by Enter, so it is to be carried out if it is complete."""

        def __init__(self, text: str, *, sent: bool) -> None:
            super().__init__()
            self.text = text
            self.sent = sent

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

    def take_key(self, key: str) -> bool:
        """Whether a key of the input was for the list."""
        marked = self.marked
        if marked is None:
            return False
        if key in ("up", "down"):
            self.highlighted = ((self.highlighted or 0) + (1 if key == "down" else -1)) % len(self._texts)
        elif key in ("tab", "enter"):
            self.post_message(self.Chosen(marked, sent=key == "enter"))
        elif key == "escape":
            self.show(())
        else:
            return False
        return True

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.post_message(self.Chosen(self._texts[event.option_index], sent=True))
