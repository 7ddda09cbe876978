"""What an empty conversation shows: the name, the model, and how to begin."""

from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from dsv4chat.app.styles import beside


class Welcome(Vertical):
    """A few calm lines in the middle of the transcript."""

    DEFAULT_CSS = beside(__file__)

    def __init__(self) -> None:
        super().__init__()
        self._program = Static("dsv4chat", markup=False, classes="name")
        self._model = Static("", markup=False, classes="model")

    def on_mount(self) -> None:
        self.mount(
            self._program,
            Static("DeepSeek-V4 in your terminal", markup=False, classes="line"),
            self._model,
            Static("Ask something. F1 shows all keys.", markup=False, classes="hint"),
        )

    def show_model(self, sentence: str) -> None:
        """A line about the model."""
        self._model.update(Content(sentence))
