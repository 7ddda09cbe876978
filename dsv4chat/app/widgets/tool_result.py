"""What a tool gave back, below the answer that called it."""

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from dsv4chat.app.styles import beside
from dsv4chat.app.wording import plural
from dsv4chat.store import Branch, MessageRecord
from dsv4chat.visible import visible

SHOWN = 20_000  # characters
_ERROR = "Error: "


class ToolResult(VerticalScroll, can_focus=False):
    """A message of role "tool"; `tool`: the name of the tool, where it is known. High ones scroll inside."""

    DEFAULT_CSS = beside(__file__)

    def __init__(self, record: MessageRecord, tool: str = "tool") -> None:
        super().__init__()
        self.record = record
        self._tool = tool

    def compose(self) -> ComposeResult:
        text = self.record.content
        shown = visible(text[:SHOWN]).strip("\n")
        if len(text) > SHOWN:
            shown += f"… and {plural(len(text) - SHOWN, 'more character')}"
        self.set_class(text.startswith(_ERROR), "-error")
        yield Static(
            Content.assemble((f"↳ {visible(self._tool)}  ", "bold"), shown or "(nothing)"), markup=False
        )

    def set_branch(self, branch: Branch | None) -> None:
        """A result has no others beside it."""
