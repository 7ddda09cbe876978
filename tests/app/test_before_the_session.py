"""Between the first paint and the session: every key and command is harmless, and what is typed stays."""

import threading
from pathlib import Path

import pytest

from dsv4chat.app.app import ChatApp
from dsv4chat.app.commands import COMMANDS
from dsv4chat.app.session import ChatSession
from dsv4chat.app.widgets.composer import Composer
from tests.support.app_parts import Parts, wait_until
from tests.support.chat import THOUGHT, answered
from tests.support.fake_engine import Script

GONE = ("quit", "editor")  # leave the program, or hand the terminal to another one


@pytest.mark.parametrize("typed", [False, True])
async def test_commands_before_there_is_a_session_do_no_harm(tmp_path: Path, typed: bool) -> None:
    parts, may_begin = Parts(tmp_path, Script([THOUGHT])), threading.Event()

    def make_session() -> ChatSession:
        assert may_begin.wait(60)
        return parts.session()

    app = ChatApp(make_session)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        try:
            for command in COMMANDS:
                if command.name in GONE:
                    continue
                argument = command.choices[0] if command.choices else "3" if command.argument else ""
                if typed:
                    await app.chat.carry_out(f"/{command.name} {argument}".strip())
                else:
                    await app.chat.run_command(command)
                await pilot.pause()
                while app.screen is not app.chat:
                    app.pop_screen()
            assert app.session is None
            composer = app.chat.query_one(Composer)
            composer.set_text("")
            composer.focus()
            await pilot.press(*"typed early")
            await pilot.press("ctrl+c")
            assert composer.text == ""
            await pilot.press(*"Capital?")
        finally:
            may_begin.set()
        await wait_until(pilot, lambda: app.session and app.session.can_send)
        assert composer.text == "Capital?"
        assert app.session is not None
        assert (app.session.settings.thinking, app.session.tools.on) == (True, False)
        await pilot.press("enter")
        await answered(pilot, app)
        assert app.session.path[-1].content == "The capital is **Paris**."
