"""Asks whether a tool may run, above the input and without taking what is being typed."""

import json
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key
from textual.message import Message
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from dsv4chat.app.styles import beside
from dsv4chat.visible import visible

if TYPE_CHECKING:
    from dsv4chat.tools.approval import Answer

_ANSWERS: "tuple[tuple[Answer, str], ...]" = (
    ("once", "Run it once"),
    ("always", "Always run this tool"),
    ("no", "Not this time"),
    ("never", "Never run this tool"),
)
_SHOWN = 400  # characters of the arguments


class ApprovalBar(Vertical):
    """Hidden while there is no question. Printable keys go to the input, so that nobody agrees by typing."""

    DEFAULT_CSS = beside(__file__)

    class Decided(Message):
        """What the person said."""

        def __init__(self, answer: "Answer") -> None:
            super().__init__()
            self.answer = answer

    class Typed(Message):
        """A character that was meant for the input."""

        def __init__(self, character: str) -> None:
            super().__init__()
            self.character = character

    class Choices(OptionList):
        """The four answers."""

        BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "Answer", id="answer")]

        def on_key(self, event: Key) -> None:
            if event.is_printable and event.character:
                event.stop()
                self.post_message(ApprovalBar.Typed(event.character))

    def __init__(self) -> None:
        super().__init__()
        self._question = Static("", markup=False, classes="question")
        self._choices = self.Choices(*(Option(words) for _, words in _ANSWERS), compact=True, markup=False)

    def compose(self) -> ComposeResult:
        yield self._question
        yield self._choices

    def on_mount(self) -> None:
        self.display = False

    def ask(self, tool: str, arguments: str, *, focus: bool) -> None:
        """Show the question; `focus`: the keys are for it at once."""
        shown = _one_line(arguments)
        self._question.update(
            Content.assemble(
                "Run ", (visible(tool), "bold"), "?", (f"  {shown}" if shown else "", "$foreground 70%")
            )
        )
        self._choices.highlighted = 0
        self.border_title = "Tool"
        self.border_subtitle = "Enter answers · Esc stops" if focus else "Tab, then Enter answers · Esc stops"
        self.display = True
        if focus:
            self._choices.focus()

    def hide(self) -> bool:
        """The question is answered or gone; whether the keys were for it."""
        had = self._choices.has_focus
        self.display = False
        return had

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.post_message(self.Decided(_ANSWERS[event.option_index][0]))


def _one_line(arguments: str) -> str:
    try:
        data = json.loads(arguments)
        parts = [
            f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
            for name, value in data.items()
        ]
        text = ", ".join(parts)
    except (ValueError, AttributeError):
        text = arguments
    text = " ".join(visible(text).split())
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
