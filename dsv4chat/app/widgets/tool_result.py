"""What a tool gave back, below the answer that called it."""

from collections.abc import Sequence

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
    """A message of role "tool"; a high one scrolls inside. Names the tool if its parent has the call."""

    DEFAULT_CSS = beside(__file__)

    def __init__(self, record: MessageRecord) -> None:
        super().__init__()
        self.record = record

    def compose(self) -> ComposeResult:
        text = self.record.content
        shown = visible(text[:SHOWN]).strip("\n")
        if len(text) > SHOWN:
            shown += f"… and {plural(len(text) - SHOWN, 'more character')}"
        self.set_class(text.startswith(_ERROR), "-error")
        name = visible(self._tool())
        yield Static(Content.assemble((f"↳ {name}  ", "bold"), shown or "(nothing)"), markup=False)

    def _tool(self) -> str:
        """Of the last answer before it, the call that this is the result of."""
        records: Sequence[MessageRecord] = getattr(self.parent, "records", ())
        at = next((at for at, record in enumerate(records) if record.id == self.record.id), 0)
        for record in reversed(records[:at]):
            if record.role == "assistant":
                calls = {call.id: call.name for call in record.tool_calls}
                return calls.get(self.record.tool_call_id or "", "tool")
        return "tool"

    def set_branch(self, branch: Branch | None) -> None:
        """A result has no others beside it."""
