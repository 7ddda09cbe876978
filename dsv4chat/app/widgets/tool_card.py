"""A tool call the model made: its name, its arguments, and what is wrong with it if it cannot be run."""

import json

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.growing_text import GrowingText
from dsv4chat.encoding import ToolCall
from dsv4chat.visible import visible

_SAID = {
    "once": "you allowed it once",
    "always": "you allowed it for good",
    "never": "you did not allow it",
}


class ToolCard(Vertical):
    """One call. `call` is None while it is being written: then `add` brings its arguments.

    said: what the person said to it: "once", "always", "never".
    """

    DEFAULT_CSS = beside(__file__)

    def __init__(self, name: str, call: ToolCall | None = None, said: str | None = None) -> None:
        super().__init__()
        self._call = call
        self._said = said
        self._title = Static(classes="title", markup=False)
        self._arguments = GrowingText(_pretty(call.arguments) if call else "", classes="arguments")
        self._note = Static(classes="note", markup=False)
        self._called = name

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._arguments
        yield self._note

    def on_mount(self) -> None:
        self._show()

    def add(self, text: str) -> None:
        """More of the arguments' text."""
        self._arguments.append(text)

    async def complete(self, call: ToolCall) -> None:
        """The call is whole: its arguments in their final form."""
        self._call = call
        await self._arguments.clear()
        self._arguments.append(_pretty(call.arguments))
        self._show()

    def note(self, sentence: str) -> None:
        """What becomes of the call; not shown for one that is invalid and says so already."""
        if self._call is None or self._call.valid:
            self._tell(sentence)

    def _show(self) -> None:
        call = self._call
        self.set_class(call is not None and not call.valid, "-invalid")
        self._title.update(Content(f"⚙ {visible(call.name if call else self._called)}"))
        if call is None:
            note = "being written"
        elif call.valid:
            note = _SAID.get(self._said or "", "")
        else:
            note = f"invalid: {call.error or 'it cannot be read'}"
        self._tell(note)

    def _tell(self, sentence: str) -> None:
        self._note.display = bool(sentence)
        self._note.update(Content(visible(sentence)))


def _pretty(arguments: str) -> str:
    """One `name: value` a line for a JSON object, anything else as it is."""
    try:
        data = json.loads(arguments)
    except ValueError:
        return arguments
    if not isinstance(data, dict):
        return arguments
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in data.items()
    )
