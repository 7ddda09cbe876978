"""Where the person writes: several lines that grow, Enter sends."""

from rich.text import Text
from textual.actions import SkipAction
from textual.events import Key
from textual.message import Message
from textual.widgets import TextArea

from dsv4chat.app.styles import beside


class Composer(TextArea):
    """Enter posts `Submitted`; Shift+Enter, Alt+Enter and Ctrl+J start a new line.

    waiting: a message was sent while it could not be answered yet; it stays here, marked, until it can be or
    is changed.
    """

    DEFAULT_CSS = beside(__file__)

    class Submitted(Message):
        """The person wants `text` to be sent. The text stays until `clear` is called."""

        def __init__(self, composer: "Composer", text: str) -> None:
            super().__init__()
            self.composer = composer
            self.text = text

        @property
        def control(self) -> "Composer":
            return self.composer

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            id=id,
            soft_wrap=True,
            tab_behavior="focus",
            show_line_numbers=False,
            highlight_cursor_line=False,
            placeholder="Message",
        )
        self._waiting_for = self._waiting_text = ""

    @property
    def waiting(self) -> bool:
        """Whether the text is to be sent as soon as it can be."""
        return bool(self._waiting_for)

    def wait_for(self, reason: str) -> None:
        """Mark the text as to be sent, and why it is not yet; "" ends the waiting."""
        self._waiting_for, self._waiting_text = reason, self.text
        self.set_class(bool(reason), "-waiting")
        self.border_subtitle = f"sent {reason} · Esc keeps it here" if reason else ""

    async def _on_key(self, event: Key) -> None:
        # Where the default is not prevented, Textual calls TextArea's own handler next.
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            self.post_message(self.Submitted(self, self.text))
        elif event.key in ("shift+enter", "alt+enter", "ctrl+j", "newline"):
            event.stop()
            event.prevent_default()
            self.insert("\n")

    def on_text_area_changed(self) -> None:
        if self.waiting and self.text != self._waiting_text:
            self.wait_for("")

    def get_line(self, line_index: int) -> Text:
        """A line as it is drawn: control characters of a pasted text are shown, one cell each, not obeyed."""
        return Text(self.document.get_line(line_index).translate(_PICTURES), end="", no_wrap=True)

    def action_cursor_line_end(self, select: bool = False) -> None:
        """In an empty input the key is for the transcript."""
        if not self.text:
            raise SkipAction
        super().action_cursor_line_end(select)


_PICTURES = {
    **{code: 0x2400 + code for code in range(0x20) if code != 0x09},
    0x7F: 0x2421,
    **dict.fromkeys([*range(0x80, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F)], 0xFFFD),
    **dict.fromkeys(range(0x2066, 0x206A), 0xFFFD),
}
