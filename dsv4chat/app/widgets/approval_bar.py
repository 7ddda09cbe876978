"""Asks whether a tool may run, above the input and without taking what is being typed."""

import json
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Event, Key, Paste
from textual.message import Message
from textual.widget import Widget
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.harmless_editing import typed
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
    """Hidden while there is no question. What is typed goes to the input, so that nobody agrees by typing."""

    DEFAULT_CSS = beside(__file__)

    class Decided(Message):
        """What the person said."""

        def __init__(self, answer: "Answer") -> None:
            super().__init__()
            self.answer = answer

    class Choices(OptionList):
        """The four answers.

        Keys may be waiting here that were meant for the input: those pressed in one go with a character, and
        those that came before the focus had left an answered question. `other`: the widget they go to.
        """

        BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "Answer", id="answer")]

        def __init__(self) -> None:
            options = (Option(words) for _, words in _ANSWERS)
            super().__init__(*options, compact=True, markup=False)
            self.other: Widget | None = None
            self.open = False  # there is a question and it has no answer yet
            self._typing = False  # what comes next belongs to what was typed

        def on_focus(self) -> None:
            self._typing = False

        async def on_key(self, event: Key) -> None:
            # Bindings are carried out when the key has come up to the app, by then without the order that the
            # keys had: so here.
            if typed(event) is not None:
                self._type()
            if self._typing:
                event.stop()
                self._hand_over(Key(event.key, event.character))
                return
            active = self.screen.active_bindings.get(event.key)
            if active is not None and active.node is self:
                event.stop()
                await self.run_action(active.binding.action)

        def on_paste(self, event: Paste) -> None:
            event.stop()
            self._type()
            self._hand_over(Paste(event.text))

        def action_select(self) -> None:
            """Once for a question, however often the key or the mouse says it."""
            if self.open:
                self.open = False
                super().action_select()

        def _type(self) -> None:
            self._typing = True
            if self.other is not None:
                self.screen.set_focus(self.other)

        def _hand_over(self, event: Event) -> None:
            if self.other is not None:
                self.other.post_message(event)

    def __init__(self) -> None:
        super().__init__()
        self._question = Static("", markup=False, classes="question")
        self._choices = self.Choices()

    def compose(self) -> ComposeResult:
        yield self._question
        yield self._choices

    def on_mount(self) -> None:
        self.display = False

    def set_input(self, widget: Widget) -> None:
        """Where what is typed goes."""
        self._choices.other = widget

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
        self.border_subtitle = f"{'' if focus else 'Shift+Tab, then '}Enter answers · Esc stops"
        self.display = True
        self._choices.open = True
        if focus:
            self.screen.set_focus(self._choices)  # at once: the next key may be the answer

    def hide(self) -> bool:
        """The question is answered or gone; whether the keys were for it."""
        had = self._choices.has_focus
        self._choices.open = False
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
