"""The list of conversations, the one used last first; older ones are read when one gets near the end."""

import time
from collections.abc import Awaitable, Callable, Sequence

from textual import on
from textual.content import Content
from textual.widgets import OptionList

from dsv4chat.app.screens.menu import Menu
from dsv4chat.store import ConversationSummary
from dsv4chat.visible import visible

PAGE = 200  # conversations read first; later as many as are there already, so that few reads reach the end
_LARGEST = 1_000  # conversations; more at once would hold up the keys
_NEAR = 20  # lines above the end at which more are read
_TITLE = 42


class ConversationsScreen(Menu[int]):
    """Gives back the number of a conversation; None when nothing was chosen.

    summaries: the first `PAGE`. read(limit, offset): those that come after the first `offset`.
    """

    def __init__(
        self,
        summaries: Sequence[ConversationSummary],
        read: Callable[[int, int], Awaitable[list[ConversationSummary]]],
        current: int | None,
        now: float | None = None,
    ) -> None:
        self._now = now = time.time() if now is None else now
        self._read = read
        self._known = {summary.id for summary in summaries}
        self._offset = len(summaries)
        self._all = len(summaries) < PAGE  # none is left to read
        self._reading = False
        choices = [(_line(summary, now), summary.id) for summary in summaries]
        chosen = next((i for i, summary in enumerate(summaries) if summary.id == current), 0)
        hint = "Enter opens · Esc goes back" if choices else "No conversation yet · Esc goes back"
        super().__init__("Conversations", choices, chosen, hint)

    def on_mount(self) -> None:
        self.watch(self.query_one(OptionList), "scroll_y", self._scrolled, init=False)

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self._read_near(event.option_index, event.option_list.option_count)

    def _scrolled(self, place: float) -> None:
        self._read_near(place, self.query_one(OptionList).max_scroll_y)

    def _read_near(self, place: float, end: int) -> None:
        if not self._all and not self._reading and place >= end - _NEAR:
            self._reading = True
            self.run_worker(self._read_more(), group="read")

    async def _read_more(self) -> None:
        limit = max(PAGE, min(self._offset, _LARGEST))
        found = await self._read(limit, self._offset)
        self._offset += len(found)
        self._all = len(found) < limit
        # One that was used meanwhile has moved to the top and pushed another one over the edge.
        new = [summary for summary in found if summary.id not in self._known]
        self._known.update(summary.id for summary in new)
        self.add_choices([(_line(summary, self._now), summary.id) for summary in new])
        self._reading = False


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
