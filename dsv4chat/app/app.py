"""The Textual application: paints the screen first, then builds the chat behind it."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.screen import Screen

from dsv4chat.app import garbage
from dsv4chat.app.keys import complaints, usable
from dsv4chat.app.screens.chat_screen import ChatScreen
from dsv4chat.app.styles import beside
from dsv4chat.app.terminal_input import forgiving
from dsv4chat.app.themes import DARK, LIGHT

if TYPE_CHECKING:
    from dsv4chat.app.session import ChatSession


class ChatApp(App[None]):
    """make_session is called in a thread after the first paint, as it imports the encoder and the history."""

    TITLE = "dsv4chat"
    CSS = beside(__file__)
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "Quit", priority=True, id="quit"),
    ]

    def __init__(self, make_session: "Callable[[], ChatSession]", theme: str = DARK.name) -> None:
        # Where NO_COLOR is set, no colour at all is wanted, not shades of grey in place of colours.
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self._make_session = make_session
        self.session: ChatSession | None = None
        self.chat = ChatScreen()
        for own in (DARK, LIGHT):
            self.register_theme(own)
        self.theme = theme if theme in self.available_themes else DARK.name

    def get_driver_class(self) -> type[Driver]:
        return forgiving(super().get_driver_class())

    def get_default_screen(self) -> ChatScreen:
        return self.chat

    def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            # Not in a thread other than the main one, where tests may run the app.
            with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):
                loop.add_signal_handler(number, self.exit)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        garbage.begin()
        self.run_worker(self._build(), name="session", exit_on_error=True)

    async def _build(self) -> None:
        session = self.session = await asyncio.to_thread(self._make_session)
        self.chat.attach(session)
        session.preferences.changed.append(self._setting_changed)
        self._set_keys(session)
        session.start_engine()
        await session.open_history()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """All commands, for the palette."""
        from dsv4chat.app.commands import COMMANDS

        for command in COMMANDS:
            typed = f"/{command.name} {command.argument}".strip()
            yield SystemCommand(command.words, typed, partial(self.chat.choose_command, command))

    def action_command_palette(self) -> None:
        self._open_palette(id="--command-palette")

    def search_themes(self) -> None:
        """Textual's list of themes."""
        from textual.theme import ThemeProvider

        self._open_palette(providers=[ThemeProvider], placeholder="A theme")

    def _open_palette(self, **options: Any) -> None:
        from dsv4chat.app.screens.palette import Palette

        if not Palette.fits(self.size):
            self.chat.say("The window is too small for the palette. Commands can be typed: /help", "warning")
        elif not isinstance(self.screen, Palette):
            self.push_screen(Palette(**options))

    def _set_keys(self, session: "ChatSession") -> None:
        changed = session.preferences.settings.keys
        self.set_keymap(usable(changed))
        for sentence in complaints(changed, self.chat.all_bindings()):
            self.chat.say(sentence, "warning")

    def _setting_changed(self, section: str, name: str) -> None:
        if self.session is not None and (section, name) == ("appearance", "theme"):
            theme = self.session.preferences.settings.appearance.theme
            if theme in self.available_themes and theme != self.theme:
                self.theme = theme

    def _watch_theme(self, theme_name: str) -> None:
        """A theme chosen anywhere is kept in the settings."""
        super()._watch_theme(theme_name)
        session = self.session
        if session is not None and session.preferences.settings.appearance.theme != theme_name:
            trouble = session.preferences.set("appearance", "theme", theme_name)
            if trouble:
                self.chat.say(trouble, "warning")

    async def on_unmount(self) -> None:
        if self.chat.drafts is not None:
            self.chat.drafts.save()
        if self.session is not None:
            await self.session.close()
