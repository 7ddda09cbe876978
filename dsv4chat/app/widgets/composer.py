"""Where the person writes: several lines that grow, Enter sends."""

from collections.abc import Callable
from typing import Protocol

from textual.actions import SkipAction
from textual.events import Key, Paste
from textual.message import Message

from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.harmless_editing import HarmlessTextArea
from dsv4chat.app.widgets.pastes import Pastes

_SHOWN = (20_000, 500)  # characters and lines of an own text that is shown whole


class Suggestions(Protocol):
    """Something above the input that some keys are for while it is there."""

    def take_key(self, key: str) -> bool:
        """Whether the key was for it."""
        ...


class Composer(HarmlessTextArea):
    """Enter posts `Submitted`; Shift+Enter, Alt+Enter and Ctrl+J start a new line.

    A large text that is pasted is shown as one line that stands for it; `whole_text` has it all.
    suggestions: a list above that takes Up, Down, Tab, Enter and Esc while it has something to suggest.
    recall(direction, text): what stands before (-1) or after (1) `text` in the history of prompts, or None;
    asked when the cursor leaves the first or the last line. editing: the message that is being changed.
    """

    DEFAULT_CSS = beside(__file__)

    class Submitted(Message):
        """The person wants `text`, the whole of it, to be sent. It stays until `clear_sent` is."""

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
        self.recall: Callable[[int, str], str | None] | None = None
        self.editing: int | None = None
        self.suggestions: Suggestions | None = None
        self._draft = self._sent = ""
        self._pastes = Pastes()

    @property
    def whole_text(self) -> str:
        """The text with all that was pasted."""
        return self._pastes.expand(self.text)

    @property
    def unsent_text(self) -> str:
        """What is being written, as a whole: not the message that is being changed meanwhile."""
        return self.whole_text if self.editing is None else self._draft

    def bring_back(self, text: str) -> None:
        """Put what was being written at another time before what is being written."""
        if not text:
            return
        texts = f"{text}\n\n{self.unsent_text}" if self.unsent_text else text
        if self.editing is None:
            self.set_text(texts)
        else:
            self._draft = texts

    def clear_sent(self) -> None:
        """Remove the text that was submitted; what was typed since then stays."""
        self.set_text(self.text[len(self._sent) :] if self.text.startswith(self._sent) else "")

    def begin_edit(self, message: int, text: str) -> None:
        """Change a message that was sent; what was being written is kept until `end_edit`."""
        if self.editing is None:
            self._draft = self.whole_text
        self.editing = message
        self.set_text(text)
        self.set_class(True, "-editing")
        self.border_subtitle = "another version of your message · Esc leaves it as it was"

    def end_edit(self) -> None:
        """Back to what was being written before."""
        if self.editing is None:
            return
        self.editing = None
        self.set_text(self._draft)
        self._draft = ""
        self.set_class(False, "-editing")
        self.border_subtitle = ""

    def set_text(self, text: str) -> None:
        """Replace the text; the cursor stands at its end."""
        text = self._pastes.expand(text)
        self._pastes.forget_all()
        self.text = self._pastes.fold(text, *_SHOWN)
        self.move_cursor(self.document.end)

    def _refresh_size(self) -> None:
        super()._refresh_size()
        # Textual keeps a height that it found while a layout was due already, as after a change of width.
        self._box_model_cache.clear()

    async def _on_key(self, event: Key) -> None:
        # Where the default is not prevented, Textual calls TextArea's own handler next.
        if self.suggestions is not None and self.suggestions.take_key(event.key):
            event.stop()
            event.prevent_default()
        elif event.key == "enter":
            event.stop()
            event.prevent_default()
            self.move_cursor(self.document.end)
            self._sent = self.text
            self.post_message(self.Submitted(self, self.whole_text))
        elif event.key in _IN_ORDER and event.key in self._bindings.key_to_bindings:
            # Bindings are carried out when the key has come up to the app: what was typed meanwhile would be
            # there before a character is deleted.
            event.stop()
            event.prevent_default()
            await self.run_action(_IN_ORDER[event.key])
        elif event.key in ("shift+enter", "alt+enter", "ctrl+j", "newline"):
            event.stop()
            event.prevent_default()
            self._replace_via_keyboard("\n", *self.selection)

    async def _on_paste(self, event: Paste) -> None:
        # Terminals send line breaks of a paste as carriage returns.
        text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        event.stop()
        event.prevent_default()
        self.replace(self._pastes.fold(text), *self.selection, maintain_selection_offset=False)

    def action_cursor_up(self, select: bool = False) -> None:
        """On the first line: back in the history of prompts."""
        if select or not self.navigator.is_first_wrapped_line(self.cursor_location) or not self._recall(-1):
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        """On the last line: forward in the history of prompts."""
        if select or not self.navigator.is_last_wrapped_line(self.cursor_location) or not self._recall(1):
            super().action_cursor_down(select)

    def _recall(self, direction: int) -> bool:
        text = self.recall(direction, self.text) if self.recall is not None else None
        if text is None:
            return False
        self.set_text(text)
        if direction < 0:
            self.move_cursor((0, len(self.document.get_line(0))))
        return True

    def action_delete_right(self) -> None:
        """In an empty input Ctrl+D is for the screen."""
        if not self.text:
            raise SkipAction
        super().action_delete_right()

    def action_cursor_line_end(self, select: bool = False) -> None:
        """In an empty input the key is for the transcript."""
        if not self.text:
            raise SkipAction
        super().action_cursor_line_end(select)


_IN_ORDER = {
    "backspace": "delete_left",
    "left": "cursor_left",
    "right": "cursor_right",
    "ctrl+u": "delete_to_start_of_line",
    "ctrl+w": "delete_word_left",
}
