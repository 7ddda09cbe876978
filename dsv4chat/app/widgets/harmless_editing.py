"""Textual's input widgets, drawing what a terminal would obey as a picture of one cell; the text stays."""

from rich.text import Text
from textual.widgets import Input, TextArea

_PICTURES = {
    **{code: 0x2400 + code for code in range(0x20) if code != 0x09},
    0x7F: 0x2421,
    **dict.fromkeys([*range(0x80, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F)], 0xFFFD),
    **dict.fromkeys([*range(0x2066, 0x206A), *range(0xD800, 0xE000)], 0xFFFD),
}
_IN_A_LINE = _PICTURES | {0x09: 0x2409}


class HarmlessTextArea(TextArea):
    """A `TextArea` for text of any origin."""

    def get_line(self, line_index: int) -> Text:
        """A line as it is drawn."""
        return Text(self.document.get_line(line_index).translate(_PICTURES), end="", no_wrap=True)


class HarmlessInput(Input):
    """An `Input` for text of any origin."""

    @property
    def _value(self) -> Text:
        """The line as it is drawn."""
        return Text(self.value.translate(_IN_A_LINE), no_wrap=True, overflow="ignore", end="")
