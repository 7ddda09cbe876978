"""Keys that arrive all at once, as a double click or a slow line brings them."""

from pathlib import Path

import pytest
from textual.command import CommandList
from textual.events import Key

from dsv4chat.app.app import ChatApp
from dsv4chat.app.screens.palette import Palette
from tests.support.app_parts import Parts, screen_text, wait_until
from tests.support.chat import THOUGHT, answered, chat, say
from tests.support.fake_engine import Script


def enter(app: ChatApp, times: int) -> None:
    for _ in range(times):
        app.post_message(Key("enter", "\r"))


@pytest.mark.parametrize("opening", ["ctrl+g", "ctrl+o", "f2"])
async def test_a_second_choice_in_a_list_that_is_gone_does_nothing(tmp_path: Path, opening: str) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT]))) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
        await pilot.press(opening)
        await wait_until(pilot, lambda: app.screen is not app.chat)
        enter(app, 3)
        await wait_until(pilot, lambda: app.screen is app.chat)
        await pilot.press("s", "t", "i", "l", "l")
        await wait_until(pilot, lambda: "still" in screen_text(app))


async def test_a_second_choice_among_what_was_found_does_nothing(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT]))) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
        await pilot.press("ctrl+f", *"paris")
        await wait_until(pilot, lambda: "newest first" in screen_text(app))
        enter(app, 3)
        await wait_until(pilot, lambda: app.screen is app.chat)


async def test_the_palette_carries_a_command_out_once(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT]))) as (app, pilot):
        done: list[str] = []
        app.chat.choose_command = lambda command: done.append(command.name)  # type: ignore[method-assign, assignment]
        await pilot.press("ctrl+p", *"another")
        await wait_until(pilot, lambda: app.screen.query_one(CommandList).highlighted == 0)
        enter(app, 4)
        await wait_until(pilot, lambda: app.screen is app.chat)
        await pilot.pause()
        assert len(done) == 1


async def test_a_second_choice_among_the_themes_does_nothing(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT]))) as (app, pilot):
        await say(pilot, "/theme")
        await wait_until(pilot, lambda: isinstance(app.screen, Palette))
        await pilot.press("down")
        await wait_until(pilot, lambda: app.screen.query_one(CommandList).highlighted is not None)
        enter(app, 4)
        await wait_until(pilot, lambda: app.screen is app.chat)
        await say(pilot, "/theme")
        await wait_until(pilot, lambda: isinstance(app.screen, Palette))
        await pilot.resize_terminal(6, 10)
        await pilot.press("pagedown")
        await wait_until(pilot, lambda: app.screen is app.chat)
