"""What the person said, exactly as it was typed."""

from textual.content import Content
from textual.widgets import Static

from dsv4chat.app.styles import beside
from dsv4chat.app.wording import plural
from dsv4chat.store import MessageRecord
from dsv4chat.visible import visible

SHOWN = 20_000  # characters


class UserMessage(Static):
    """A message of the person (or of another role than the assistant's); of a very long one the beginning."""

    DEFAULT_CSS = beside(__file__)

    def __init__(self, record: MessageRecord) -> None:
        text = visible(record.content[:SHOWN])
        more = len(record.content) - SHOWN
        if more > 0:
            text += f"… and {plural(more, 'more character')}"
        super().__init__(Content(text), markup=False)
        self.record = record
