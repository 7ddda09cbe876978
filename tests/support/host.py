"""A tiny app around one widget, and what it drew."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from dsv4chat.app.themes import DARK, LIGHT

T = TypeVar("T")


class Host(App[None]):
    """Shows one widget and keeps the messages of our own widgets that reach it."""

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self.widget = widget
        self.heard: list[Message] = []
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        self.theme = DARK.name

    def compose(self) -> ComposeResult:
        yield self.widget

    async def _on_message(self, message: Message) -> None:
        if type(message).__module__.startswith("dsv4chat."):
            self.heard.append(message)
        await super()._on_message(message)


@asynccontextmanager
async def hosted(
    make: Callable[[], Widget], size: tuple[int, int] = (60, 20)
) -> AsyncIterator[tuple[Host, Pilot[None]]]:
    """The widget in a running host of `size` cells."""
    host = Host(make())
    async with host.run_test(size=size) as pilot:
        await pilot.pause()
        yield host, pilot


def drawn(host: App[None]) -> str:
    """The screen, line by line, without spaces at the ends and empty lines at the end."""
    width, height = host.size
    rows = host.screen._compositor.render_strips()[:height]
    lines = ["".join(segment.text for segment in strip)[:width].rstrip() for strip in rows]
    return "\n".join(lines).rstrip("\n")


@asynccontextmanager
async def hosted_screen(
    make: Callable[[], Screen[T]], size: tuple[int, int] = (80, 24)
) -> AsyncIterator[tuple[Host, Pilot[None], list[T | None]]]:
    """A screen over an empty host; the list gets what the screen gives back."""
    host = Host(Static(""))
    given: list[T | None] = []
    async with host.run_test(size=size) as pilot:
        await host.push_screen(make(), given.append)
        await pilot.pause()
        yield host, pilot, given
