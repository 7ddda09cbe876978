"""Asks before quitting."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from dsv4chat.app.screens.over_chat import OverChat
from dsv4chat.app.styles import beside


class QuitScreen(OverChat[bool]):
    """Gives back whether the person wants to quit."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,y,ctrl+c,ctrl+q", "answer(True)", "Quit", priority=True),
        Binding("escape,n", "answer(False)", "Stay", priority=True),
    ]

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static("Quit?", markup=False, classes="question")
            yield Static("Enter or Ctrl+C quits · Esc stays", markup=False, classes="hint")

    def action_answer(self, wanted: bool) -> None:
        self.dismiss(wanted)
