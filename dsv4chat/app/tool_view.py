"""What happens with tools, on the screen: the question, the state of each call, the results."""

from dsv4chat.app.tool_events import (
    ApprovalOver,
    ApprovalWanted,
    CallChanged,
    ResultAdded,
    ToolNews,
    ToolsSwitched,
)
from dsv4chat.app.widgets.approval_bar import ApprovalBar
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.app.widgets.status_line import StatusLine
from dsv4chat.app.widgets.tool_card import ToolCard
from dsv4chat.app.widgets.transcript import Transcript
from dsv4chat.app.wording import milliseconds


class ToolView:
    """Applies the events to the widgets it is given."""

    def __init__(
        self, transcript: Transcript, bar: ApprovalBar, status: StatusLine, composer: Composer
    ) -> None:
        self._transcript = transcript
        self._bar = bar
        self._status = status
        self._composer = composer

    async def show(self, event: ToolNews) -> None:
        """Bring the screen up to date with one event."""
        match event:
            case ToolsSwitched(count):
                self._status.tools = count
            case ApprovalWanted(call):
                # Whoever is writing goes on writing; the question waits.
                writing = self._composer.has_focus and bool(self._composer.text)
                self._bar.ask(call.name, call.arguments, focus=not writing)
            case ApprovalOver():
                if self._bar.hide():
                    self._composer.focus()
            case CallChanged():
                self._call(event)
            case ResultAdded(record):
                await self._transcript.add(record)

    def _call(self, event: CallChanged) -> None:
        widget = self._transcript.messages.widget_of(event.message)
        cards = list(widget.query(ToolCard)) if widget is not None else []
        if event.position < len(cards):
            cards[event.position].note(_WORDS[event.state].format(_spent(event.seconds)))


_WORDS = {
    "waiting": "waits for your answer",
    "running": "running",
    "done": "ran {}",
    "error": "failed after {}",
    "invalid": "not run: the call is invalid",
    "refused": "not run: not allowed",
    "stopped": "stopped",
}


def _spent(seconds: float | None) -> str:
    return milliseconds(1000 * (seconds or 0.0))
