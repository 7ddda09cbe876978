"""Textual's input widgets for text of any origin.

What a terminal would obey is drawn as a picture of one cell; the text stays. Typed, every character is taken,
also those that Python does not call printable and Textual therefore drops: joiners of emoji and of Persian,
spaces that do not break, marks of direction, characters newer than Python's tables.
"""

import unicodedata

from rich.text import Text
from textual.events import Key
from textual.strip import Strip
from textual.widgets import Input, TextArea

_PICTURES = {
    **{code: 0x2400 + code for code in range(0x20) if code != 0x09},
    0x7F: 0x2421,
    **dict.fromkeys([*range(0x80, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F)], 0xFFFD),
    **dict.fromkeys([*range(0x2066, 0x206A), *range(0xD800, 0xE000)], 0xFFFD),
}
_IN_A_LINE = _PICTURES | {0x09: 0x2409}


_NO_TEXT = ("Cc", "Cs", "Zl", "Zp")  # controls, halves of characters, the two separators of lines


def typed(event: Key) -> str | None:
    """The character a key stands for; None for a key that is no text."""
    character = event.character
    return character if character and unicodedata.category(character) not in _NO_TEXT else None


class HarmlessTextArea(TextArea):
    """A `TextArea` for text of any origin."""

    async def _on_key(self, event: Key) -> None:
        # Where the default is not prevented, Textual calls TextArea's own handler next.
        character = typed(event)
        if character is not None and not event.is_printable and not self.read_only:
            event.stop()
            event.prevent_default()
            self._replace_via_keyboard(character, *self.selection)

    def render_line(self, y: int) -> Strip:
        # Where there is no room for a letter Textual cannot wrap the placeholder.
        return super().render_line(y) if self.content_size.width else Strip([])

    def get_line(self, line_index: int) -> Text:
        """A line as it is drawn."""
        return Text(self.document.get_line(line_index).translate(_PICTURES), end="", no_wrap=True)


class HarmlessInput(Input):
    """An `Input` for text of any origin."""

    async def _on_key(self, event: Key) -> None:
        character = typed(event)
        if character is not None and not event.is_printable:
            event.stop()
            event.prevent_default()
            self.replace(character, *self.selection)

    @property
    def _value(self) -> Text:
        """The line as it is drawn."""
        return Text(self.value.translate(_IN_A_LINE), no_wrap=True, overflow="ignore", end="")
