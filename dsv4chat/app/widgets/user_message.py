"""What the person said, exactly as it was typed."""

from textual.content import Content
from textual.events import Click
from textual.widgets import Static

from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.branch_mark import branch_mark, clicked_arrow
from dsv4chat.app.wording import plural
from dsv4chat.store import Branch, MessageRecord
from dsv4chat.visible import visible

SHOWN = 20_000  # characters


class UserMessage(Static):
    """A message of the person (or of another role than the assistant's); of a very long one the beginning."""

    DEFAULT_CSS = beside(__file__)

    def __init__(self, record: MessageRecord, branch: Branch | None = None) -> None:
        self.record = record
        self._branch = branch
        super().__init__(self._text(), markup=False)

    def set_branch(self, branch: Branch | None) -> None:
        """Where it stands among the branches at its place."""
        if branch != self._branch:
            self._branch = branch
            self.update(self._text())

    def on_click(self, event: Click) -> None:
        clicked_arrow(event, self.record.id, self)

    def _text(self) -> Content:
        text = visible(self.record.content[:SHOWN])
        more = len(self.record.content) - SHOWN
        if more > 0:
            text += f"… and {plural(more, 'more character')}"
        mark = branch_mark(self._branch)
        return Content.assemble(text, "\n", (mark.stylize("$foreground 60%"))) if mark else Content(text)
