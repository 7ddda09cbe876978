"""All keys and commands, and what the panels show."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from dsv4chat.app.commands import COMMANDS
from dsv4chat.app.keys import keys_of
from dsv4chat.app.screens.over_chat import OverChat
from dsv4chat.app.styles import beside

_WRITING = (
    ("Enter", "send"),
    ("Shift+Enter, Ctrl+J", "new line"),
    ("↑, ↓", "earlier messages, from the first and the last line"),
    ("/", "commands; a space before it sends it as it is"),
    ("Tab", "from the input to the conversation and back"),
    ("Esc", "stop the answer; what is there is kept"),
    ("Ctrl+C", "copy what is selected, else stop, else clear the input, else quit"),
    ("Ctrl+D", "delete the character at the cursor; quit when the input is empty"),
    ("Ctrl+P", "all commands by words"),
)
_SCREEN = ("page_up", "page_down", "beginning", "end")
_PANELS = (
    ("Latency", "ms of the last token and of the last 512; time to the first token of this turn"),
    (
        "|X| per layer",
        "largest element of the residual stream after each layer, logarithmic; grey: the largest "
        "so far. Large values are normal; w, c, h: window, CSA and HCA layers",
    ),
)
_OTHER = (("[keys]", 'in the settings file gives a command other keys by its grey name: stop = "escape,f9"'),)


class HelpScreen(OverChat[None]):
    """Left by Esc, F1 or Enter. own: all bindings that have a name. changed: keys the settings changed.

    conversation: the names of those that act on a message when the conversation has the focus.
    """

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,enter,q,ctrl+c", "leave", "Leave", show=False, priority=True)
    ]

    def __init__(
        self, own: Mapping[str, Binding], changed: Mapping[str, str], conversation: tuple[str, ...]
    ) -> None:
        super().__init__()
        self._own = own
        self._changed = changed
        self._conversation = conversation

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="box") as box:
            box.border_title = "Help"
            yield from _section("Writing", _WRITING)
            for group, commands in groupby(COMMANDS, key=lambda command: command.group):
                yield Static(group, markup=False, classes="head")
                for command in commands:
                    typed = f"/{command.name} {command.argument}".strip()
                    yield from self._row(command.binding, command.words, typed)
            yield Static("A message (after Tab)", markup=False, classes="head")
            for name in self._conversation:
                yield from self._row(name)
            yield Static("Scrolling", markup=False, classes="head")
            for name in _SCREEN:
                yield from self._row(name)
            yield from _section("Panels", _PANELS)
            yield from _section("Other keys", _OTHER)

    def _row(self, name: str, words: str = "", typed: str = "") -> Iterator[Static]:
        binding = self._own.get(name)
        if binding is not None and not words:
            words = binding.tooltip or binding.description
        keys = keys_of(name, self._own, self._changed)
        yield Static(keys or typed, markup=False, classes="key")
        also = f"  {typed}" if keys and typed else ""
        yield Static(
            Content.assemble(words, (also, "$accent"), (f"  {name}" if keys else "", "$foreground 40%")),
            markup=False,
            classes="words",
        )

    def action_leave(self) -> None:
        self.dismiss(None)


def _section(title: str, rows: tuple[tuple[str, str], ...]) -> Iterator[Static]:
    yield Static(title, markup=False, classes="head")
    for key, words in rows:
        yield Static(key, markup=False, classes="key")
        yield Static(Content(words), markup=False, classes="words")
