"""Full-text search over all conversations: type, look, jump to the message."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import WorkType

from dsv4chat.app.screens.conversations_screen import when
from dsv4chat.app.screens.over_chat import OverChat
from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.choice_list import ChoiceList
from dsv4chat.app.widgets.harmless_editing import HarmlessInput
from dsv4chat.app.wording import plural
from dsv4chat.store import Found
from dsv4chat.visible import visible

PAGE = 50
_PAUSE = 0.08  # seconds without a key before the search begins
_WHO = {"user": "you", "assistant": "answer", "tool": "tool", "system": "system"}


class SearchScreen(OverChat[Found | None]):
    """Gives back what was chosen; None when it is left by Esc.

    search(words, before): the newest messages with all words, older than message `before` if that is given.
    """

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "leave", "Leave", show=False, priority=True),
        Binding("up", "move('cursor_up')", show=False, priority=True),
        Binding("down", "move('cursor_down')", show=False, priority=True),
        Binding("pageup", "move('page_up')", show=False, priority=True),
        Binding("pagedown", "move('page_down')", show=False, priority=True),
    ]

    def __init__(
        self,
        search: Callable[[str, int | None], Awaitable[list[Found]]],
        words: str = "",
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self._search = search
        self._words = words
        self._now = now
        self._found: list[Found] = []
        self._all = True  # nothing older is left to load
        self._loading = False

    def compose(self) -> ComposeResult:
        with Vertical(id="box") as box:
            box.border_title = "Search"
            yield HarmlessInput(self._words, placeholder='words, or "a phrase"', compact=True)
            yield ChoiceList(compact=True, markup=False)
            yield Static("", markup=False, id="outcome")
            yield Static("Enter goes to the message · Esc goes back", markup=False, classes="hint")

    def on_mount(self) -> None:
        self.query_one(OptionList).can_focus = False
        self.query_one(Input).focus()

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        # A function, not a coroutine: the next letter may stop the worker before it has begun.
        work: WorkType[None] = partial(self._look_for, event.value)
        self.run_worker(work, exclusive=True, group="search")

    async def _look_for(self, words: str) -> None:
        await asyncio.sleep(_PAUSE)
        found = await self._search(words, None) if words.strip() else []
        if self._is_gone:
            return
        self._found, self._all, self._loading = [], True, False
        self.query_one(OptionList).clear_options()
        self._add(found)
        if found:
            self.query_one(OptionList).highlighted = 0
        outcome = self.query_one("#outcome", Static)
        if not words.strip():
            outcome.update("")
        elif not found:
            outcome.update("Nothing found.")
        else:
            more = "" if self._all else " and more"
            outcome.update(Content(f"{plural(len(found), 'message')}{more}, newest first"))

    @property
    def _is_gone(self) -> bool:
        """Whether the program was left during a search."""
        return not self.query(OptionList)

    def _add(self, found: list[Found]) -> None:
        now = self._now()
        self._found += found
        self._all = len(found) < PAGE
        self.query_one(OptionList).add_options(Option(_lines(one, now)) for one in found)

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if not self._all and not self._loading and event.option_index >= len(self._found) - 5:
            self._loading = True
            self.run_worker(self._load_more(), group="search")

    async def _load_more(self) -> None:
        words, last = self.query_one(Input).value, self._found[-1].message
        found = await self._search(words, last)
        if self._is_gone:
            return
        if self._found and self._found[-1].message == last:
            self._add(found)
            outcome = f"{plural(len(self._found), 'message')}{'' if self._all else ' and more'}, newest first"
            self.query_one("#outcome", Static).update(Content(outcome))
        self._loading = False

    @on(Input.Submitted)
    def _enter(self) -> None:
        at = self.query_one(OptionList).highlighted
        if at is not None and at < len(self._found):
            self.dismiss(self._found[at])

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._found[event.option_index])

    def action_move(self, how: str) -> None:
        getattr(self.query_one(OptionList), f"action_{how}")()

    def action_leave(self) -> None:
        self.dismiss(None)


def _lines(found: Found, now: float) -> Content:
    """A title line and the excerpt with the words found marked."""
    title = " ".join(visible(found.title).split()) or "(no title)"
    who = "thinking" if found.where == "reasoning" else _WHO.get(found.role, found.role)
    pieces: list[tuple[str, str]] = []
    end = 0
    for start, stop in found.marks:
        pieces += [
            (visible(found.excerpt[end:start]), ""),
            (visible(found.excerpt[start:stop]), "$accent bold"),
        ]
        end = stop
    pieces.append((visible(found.excerpt[end:]), ""))
    return Content.assemble(
        (title, "bold"), (f" · {who} · {when(found.created, now)}\n", "$foreground 55%"), *pieces
    )
