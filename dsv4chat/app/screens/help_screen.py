"""All keys, and what the panels show."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from dsv4chat.app.styles import beside

_KEYS = (
    ("Writing", ""),
    ("Enter", "send"),
    ("Shift+Enter, Ctrl+J", "new line"),
    ("Esc", "stop the answer; what is there is kept"),
    ("Ctrl+C", "copy what is selected, else stop, else clear the input, else quit"),
    ("Conversation", ""),
    ("Ctrl+N", "new conversation"),
    ("Ctrl+O", "all conversations"),
    ("Ctrl+T", "thinking on or off"),
    ("Ctrl+G", "effort of thinking"),
    ("Ctrl+R", "unfold or fold the thinking"),
    ("Screen", ""),
    ("Page up, Page down", "scroll; Ctrl+Home to the beginning, Ctrl+End to the end"),
    ("Tab", "from the input to the conversation and back"),
    ("Ctrl+B", "show or hide the panels"),
    ("Ctrl+P", "all commands, and themes"),
    ("Ctrl+Q", "quit"),
    ("Engine", ""),
    ("F4", "its log"),
    ("F5", "restart it"),
    ("Panels", ""),
    ("Latency", "ms of the last token and of the last 512; time to the first token of this turn"),
    (
        "|X| per layer",
        "largest element of the residual stream after each layer, logarithmic; grey: the largest "
        "so far. Large values are normal; w, c, h: window, CSA and HCA layers",
    ),
)


class HelpScreen(ModalScreen[None]):
    """Left by Esc, F1 or Enter."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,enter,q,ctrl+c", "leave", "Leave", show=False, priority=True)
    ]

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="box") as box:
            box.border_title = "Help"
            for key, words in _KEYS:
                if words:
                    yield Static(key, markup=False, classes="key")
                    yield Static(Content(words), markup=False, classes="words")
                else:
                    yield Static(key, markup=False, classes="head")

    def action_leave(self) -> None:
        self.dismiss(None)
