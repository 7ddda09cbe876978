"""What the person said, exactly as it was typed."""

from textual.content import Content
from textual.widgets import Static

from dsv4chat.app.styles import beside
from dsv4chat.store import MessageRecord
from dsv4chat.visible import visible


class UserMessage(Static):
    """A message of the person (or of another role than the assistant's)."""

    DEFAULT_CSS = beside(__file__)

    def __init__(self, record: MessageRecord) -> None:
        super().__init__(Content(visible(record.content)), markup=False)
        self.record = record
