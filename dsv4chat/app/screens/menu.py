"""A small screen over the chat with a list to choose from."""

from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from dsv4chat.app.screens.over_chat import OverChat
from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.choice_list import ChoiceList

Choice = TypeVar("Choice")


class Menu(OverChat[Choice | None], Generic[Choice]):
    """Gives back the choice, or None when it is left by Esc."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "leave", "Leave", show=False, priority=True)
    ]

    def __init__(
        self, title: str, choices: Sequence[tuple[Content, Choice]], chosen: int = 0, hint: str = ""
    ) -> None:
        super().__init__()
        self._title = title
        self._choices = list(choices)
        self._chosen = chosen
        self._hint = hint

    def compose(self) -> ComposeResult:
        with Vertical(id="box") as box:
            box.border_title = self._title
            yield ChoiceList(*(Option(line) for line, _ in self._choices))
            if self._hint:
                yield Static(self._hint, markup=False, classes="hint")

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        if self._choices:
            options.highlighted = self._chosen
        options.focus()

    def add_choices(self, choices: Sequence[tuple[Content, Choice]]) -> None:
        """More of them, below those that are there."""
        self._choices += choices
        for options in self.query(OptionList):  # none if the program was left meanwhile
            options.add_options(Option(line) for line, _ in choices)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._choices[event.option_index][1])

    def action_leave(self) -> None:
        self.dismiss(None)
