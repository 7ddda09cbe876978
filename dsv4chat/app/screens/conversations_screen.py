"""The list of conversations, the one used last first."""

import time
from collections.abc import Sequence

from textual.content import Content

from dsv4chat.app.screens.menu import Menu
from dsv4chat.store import ConversationSummary
from dsv4chat.visible import visible

_TITLE = 42


class ConversationsScreen(Menu[int]):
    """Gives back the number of a conversation; None when nothing was chosen."""

    def __init__(
        self, summaries: Sequence[ConversationSummary], current: int | None, now: float | None = None
    ) -> None:
        now = time.time() if now is None else now
        choices = [(_line(summary, now), summary.id) for summary in summaries]
        chosen = next((i for i, summary in enumerate(summaries) if summary.id == current), 0)
        hint = "Enter opens · Esc goes back" if choices else "No conversation yet · Esc goes back"
        super().__init__("Conversations", choices, chosen, hint)


def _line(summary: ConversationSummary, now: float) -> Content:
    title = " ".join(visible(summary.title or summary.preview).split()) or "(empty)"
    return Content.assemble(
        Content(title).truncate(_TITLE, ellipsis=True, pad=True),
        (f" {when(summary.updated, now):>12}", "$foreground 55%"),
    )


def when(moment: float, now: float) -> str:
    """How long ago in few characters: "now", "12 min", "3 h", "5 d", "2026-01-31"."""
    passed = now - moment
    if passed < 60:
        return "now"
    if passed < 3600:
        return f"{int(passed // 60)} min"
    if passed < 86_400:
        return f"{int(passed // 3600)} h"
    if passed < 7 * 86_400:
        return f"{int(passed // 86_400)} d"
    return time.strftime("%Y-%m-%d", time.localtime(moment))
