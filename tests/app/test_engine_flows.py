"""What the whole app shows of its engine."""

from collections.abc import Callable
from pathlib import Path

from dsv4chat.app.screens.log_screen import LogScreen
from dsv4chat.engine_process import EngineFailed
from tests.support.app_parts import Parts, screen_text, wait_until
from tests.support.chat import THOUGHT, answered, chat, say, tokens_shown
from tests.support.fake_engine import Script


async def test_a_dying_engine_is_explained_and_restarted_by_a_key(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT, "c</think>Back again."]))
    parts.allow = 25
    async with chat(parts) as (app, pilot):
        await say(pilot, "Capital?")
        await wait_until(pilot, lambda: tokens_shown(app) == 25)
        parts.engine.die()
        await wait_until(pilot, lambda: "F5 starts it again" in screen_text(app))
        shown = screen_text(app)
        assert "killed by SIGKILL" in shown
        assert "engine.log" in shown
        assert "The capi" in shown
        parts.allow = None
        await pilot.press("f5")
        await wait_until(pilot, lambda: app.session and app.session.can_send)
        await say(pilot, "And now?")
        await answered(pilot, app, 2)
        shown = screen_text(app)
        assert "Back again." in shown
        assert "F5" not in shown


async def test_the_engines_log_opens_on_a_key_and_obeys_nothing(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_bytes(b"first\n\x1b[31mred\x1b]52;c;AAAA\x07\nlast line\n")
    parts = Parts(tmp_path)
    async with chat(parts) as (app, pilot):
        parts.engine.log_path = log
        await pilot.press("f4")
        await wait_until(pilot, lambda: isinstance(app.screen, LogScreen))
        await wait_until(pilot, lambda: "␛[31mred␛]52;c;AAAA␇" in screen_text(app))
        await pilot.press("escape")
        await wait_until(pilot, lambda: app.screen is app.chat)


async def test_a_refused_question_is_explained_in_the_transcript(tmp_path: Path) -> None:
    refused = EngineFailed("ContextOverflowError", "The prompt has 9,000 tokens; the context holds 8,192.")
    async with chat(Parts(tmp_path, Script([refused, "x</think>Fine."]))) as (app, pilot):
        await say(pilot, "much too long")
        await answered(pilot, app)
        assert "The prompt has 9,000 tokens; the context holds 8,192." in screen_text(app)
        await say(pilot, "short")
        await answered(pilot, app, 2)
        assert "Fine." in screen_text(app)


async def test_panels_show_the_engines_numbers_and_hide_on_a_key(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    async with chat(parts) as (app, pilot):
        assert screen_text(app).count("no tokens yet") == 2
        await say(pilot, "Capital?")
        await answered(pilot, app)
        await wait_until(pilot, lambda: "148 ms" in screen_text(app))
        await pilot.pause(0.4)
        shown = screen_text(app)
        assert "136 + 12.0 ms" in shown
        assert f"0 of {len(parts.engine.asked[0])}" in shown
        assert "p50 12.0" in shown
        peak = max(app.chat._residual.rows[-1])
        assert f"{peak:.0f} at layer" in shown
        await pilot.press("ctrl+b")
        await wait_until(pilot, lambda: "Latency" not in screen_text(app))
        await pilot.press("ctrl+b")
        await wait_until(pilot, lambda: "Latency" in screen_text(app))


async def test_loading_shows_bytes_tensors_and_seconds(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(pace=0.4))
    seen: list[str] = []
    async with chat(parts, ready=False) as (app, pilot):

        def found(words: Callable[[str], bool]) -> bool:
            seen.append(screen_text(app))
            return words(seen[-1])

        await wait_until(pilot, lambda: found(lambda text: "90 of 283 tensors" in text))
        assert "7.0 MB of 20.5 MB" in seen[-1]
        assert "1.0 s left" in seen[-1]
        parts.script.pace = 0.0
        await wait_until(pilot, lambda: app.session and app.session.can_send)
        await pilot.pause(0.1)
        assert "tensors" not in screen_text(app)
