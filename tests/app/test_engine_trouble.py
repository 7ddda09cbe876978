"""What the app shows of an engine that hangs, does not stop, or dies, and how one goes on from there."""

from pathlib import Path

import pytest

from dsv4chat.app import session as session_module
from dsv4chat.engine_process import Hang
from tests.support.app_parts import Parts, screen_text, wait_until
from tests.support.chat import THOUGHT, answered, chat, say, tokens_shown
from tests.support.fake_engine import Script


async def test_esc_shows_at_once_that_it_stops_and_soon_offers_to_restart_an_engine_that_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "HANGS_AFTER", 1.0)
    parts = Parts(tmp_path, Script([THOUGHT, "c</think>Back again."]))
    parts.allow = 25
    async with chat(parts) as (app, pilot):
        await say(pilot, "Capital?")
        await wait_until(pilot, lambda: tokens_shown(app) == 25)
        parts.engine.hang = True
        await pilot.press("escape")
        await wait_until(pilot, lambda: "stopping…" in screen_text(app))
        assert "F5 starts it again" not in screen_text(app)
        await wait_until(pilot, lambda: "The engine has not stopped for 1 s." in screen_text(app))
        assert "F5 starts it again, and the answer so far is kept" in screen_text(app)
        parts.allow = None
        await pilot.press("f5")
        await wait_until(pilot, lambda: app.session and app.session.can_send)
        await pilot.pause(0.1)
        shown = screen_text(app)
        assert "stopping…" not in shown
        assert "F5 starts" not in shown
        assert "The capi" in shown
        assert app.session is not None
        assert app.session.path[-1].state == "stopped"
        await say(pilot, "And now?")
        await answered(pilot, app, 2)
        assert "Back again." in screen_text(app)


async def test_an_engine_that_stops_in_time_leaves_no_trace_of_it(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    parts.allow = 25
    async with chat(parts) as (app, pilot):
        await say(pilot, "Capital?")
        await wait_until(pilot, lambda: tokens_shown(app) == 25)
        await pilot.press("escape")
        await answered(pilot, app)
        assert "stopping…" not in screen_text(app)
        assert "has not stopped" not in screen_text(app)


async def test_a_hanging_engine_is_told_while_it_hangs(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT]))) as (app, pilot):
        parts_engine = app.session and app.session.link.engine
        assert parts_engine is not None
        parts_engine.stalled = Hang(answers=False, seconds=7.0)  # type: ignore[misc]
        await wait_until(pilot, lambda: "The engine has not answered for 7.0 s." in screen_text(app))
        assert "F5 starts it again" in screen_text(app)
        parts_engine.stalled = Hang(answers=True, seconds=75.0)  # type: ignore[misc]
        await wait_until(pilot, lambda: "at the same step for 1 min 15 s." in screen_text(app))
        parts_engine.stalled = None  # type: ignore[misc]
        await wait_until(pilot, lambda: "F5 starts it again" not in screen_text(app))
        await say(pilot, "Capital?")
        await answered(pilot, app)


async def test_how_an_engine_died_is_said_once(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    parts.allow = 25
    async with chat(parts) as (app, pilot):
        await say(pilot, "Capital?")
        await wait_until(pilot, lambda: tokens_shown(app) == 25)
        parts.engine.die()
        await wait_until(pilot, lambda: "F5 starts it again" in screen_text(app))
        await answered(pilot, app)
        shown = screen_text(app)
        assert shown.count("SIGKILL") == 1
        assert shown.count("engine.log") == 1
        assert "The engine ended before the answer did." in shown
