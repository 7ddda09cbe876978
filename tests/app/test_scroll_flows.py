"""Scrolling in the whole app."""

import re
from pathlib import Path

from textual.events import MouseScrollDown, MouseScrollUp

from dsv4chat.app.widgets.transcript import Transcript
from dsv4chat.store import ConversationSettings, open_history
from tests.support.app_parts import Parts, screen_text, wait_until
from tests.support.chat import answered, chat, one, say, tokens_shown
from tests.support.fake_engine import Script


async def test_scrolled_up_the_view_stays_and_the_end_key_returns(tmp_path: Path) -> None:
    text = "\n\n".join(f"Paragraph number {number}." for number in range(60))
    parts = Parts(tmp_path, Script([f"x</think>{text}"]))
    parts.allow = 600
    async with chat(parts, (80, 24)) as (app, pilot):
        await say(pilot, "Long")
        await wait_until(pilot, lambda: tokens_shown(app) == 600)
        await pilot.pause(0.2)
        transcript = one(app, Transcript)
        assert transcript.at_end
        await pilot.press("pageup")
        await wait_until(pilot, lambda: not transcript.at_end)
        await pilot.pause(0.3)
        place, view = (
            transcript.scroll_y,
            [line[:70].rstrip() for line in screen_text(app).splitlines()[1:12]],
        )
        parts.engine.let(1000)
        await wait_until(pilot, lambda: tokens_shown(app) == 1000)
        await pilot.pause(0.2)
        assert transcript.scroll_y == place
        assert [line[:70].rstrip() for line in screen_text(app).splitlines()[1:12]] == view
        assert "↓ 400 new tokens" in screen_text(app)
        await pilot.press("end")
        await wait_until(pilot, lambda: transcript.at_end and "new tokens" not in screen_text(app))
        parts.engine.let(None)
        await answered(pilot, app)
        assert "Paragraph number 59." in screen_text(app)
        assert transcript.max_scroll_y - transcript.scroll_y == 0


async def test_scrolling_down_to_the_end_follows_again(tmp_path: Path) -> None:
    text = "\n\n".join(f"Paragraph number {number}." for number in range(60))
    parts = Parts(tmp_path, Script([f"x</think>{text}"]))
    parts.allow = 900
    async with chat(parts, (80, 24)) as (app, pilot):
        await say(pilot, "Long")
        await wait_until(pilot, lambda: tokens_shown(app) == 900)
        await pilot.press("pageup")
        transcript = one(app, Transcript)
        await wait_until(pilot, lambda: not transcript.at_end)
        for _ in range(3):
            await pilot.press("pagedown")
            await pilot.pause(0.1)
        await wait_until(pilot, lambda: transcript.at_end)
        parts.engine.let(None)
        await answered(pilot, app)
        assert "Paragraph number 59." in screen_text(app)


async def test_the_mouse_wheel_scrolls_away_from_the_end_and_back(tmp_path: Path) -> None:
    text = "\n\n".join(f"Paragraph number {number}." for number in range(30))
    async with chat(Parts(tmp_path, Script([f"x</think>{text}"])), (80, 24)) as (app, pilot):
        await say(pilot, "Long")
        await answered(pilot, app)
        transcript = one(app, Transcript)
        await wait_until(pilot, lambda: transcript.at_end)
        bottom = transcript.scroll_y
        step = app.scroll_sensitivity_y
        await pilot._post_mouse_events([MouseScrollUp], transcript, offset=(5, 5))
        await wait_until(pilot, lambda: transcript.scroll_y == bottom - step)
        assert not transcript.at_end
        await pilot._post_mouse_events([MouseScrollUp], transcript, offset=(5, 5))
        await wait_until(pilot, lambda: transcript.scroll_y == bottom - 2 * step)
        await pilot._post_mouse_events([MouseScrollDown], transcript, offset=(5, 5))
        await wait_until(pilot, lambda: transcript.scroll_y == bottom - step)
        await pilot._post_mouse_events([MouseScrollDown], transcript, offset=(5, 5))
        await wait_until(pilot, lambda: transcript.at_end)


async def test_long_conversations_are_mounted_in_part_and_loaded_on_scroll(tmp_path: Path) -> None:
    write_history(tmp_path, 60)
    async with chat(Parts(tmp_path), (80, 24)) as (app, pilot):
        await wait_until(pilot, lambda: "message 59" in screen_text(app))
        transcript = one(app, Transcript)
        mounted = transcript.messages
        assert len(mounted.mounted) <= 20
        seen = set(re.findall(r"message \d+", screen_text(app)))
        assert "message 54" not in seen
        await pilot.press("pageup")  # to the first that is mounted: more are, but what is seen stays
        await wait_until(pilot, lambda: "message 54" in screen_text(app))
        seen |= set(re.findall(r"message \d+", screen_text(app)))
        for _ in range(40):
            await pilot.press("pageup")
            await pilot.pause(0.05)
            seen |= set(re.findall(r"message \d+", screen_text(app)))
            assert len(mounted.mounted) <= 32
            if "message 0" in screen_text(app).split("\n")[2]:
                break
        assert seen == {f"message {number}" for number in range(60)} | {"message 0"}
        assert "earlier" not in screen_text(app)
        assert "later" not in screen_text(app)
        await pilot.press("ctrl+end")
        await wait_until(pilot, lambda: "message 59" in screen_text(app))
        assert len(mounted.mounted) <= 24
        await pilot.press("ctrl+home")
        await wait_until(pilot, lambda: "message 0\n" in screen_text(app))
        seen = set()
        for _ in range(40):
            await pilot.press("pagedown")
            await pilot.pause(0.05)
            seen |= set(re.findall(r"message \d+", screen_text(app)))
            assert len(mounted.mounted) <= 32
        assert "message 59" in seen
        assert transcript.at_end


async def test_who_has_scrolled_up_stays_at_a_message_when_heights_change(tmp_path: Path) -> None:
    words = " ".join(f"word{number}" for number in range(40))
    thinking = "\n".join(f"Thought {number}." for number in range(6))
    answers = [f"{thinking}</think>Answer {number}. {words}" for number in range(8)]
    async with chat(Parts(tmp_path, Script(answers)), (80, 24)) as (app, pilot):
        for number in range(8):
            await say(pilot, f"Question {number}?")
            await answered(pilot, app, number + 1)
        transcript = one(app, Transcript)
        await pilot.press("pageup")
        await wait_until(pilot, lambda: not transcript.at_end)
        await pilot.pause(0.2)

        def first_answer() -> tuple[int, str]:
            """The row where the first one in sight begins, and which."""
            lines = screen_text(app).splitlines()
            row = next(row for row, line in enumerate(lines) if " Thought · " in line)
            found = re.search(r"Answer \d", "\n".join(lines[row:]))
            assert found is not None
            return row, found.group()

        place = first_answer()
        for _ in range(2):
            await pilot.press("ctrl+r")
            await pilot.pause(0.5)
            assert first_answer() == place
        for width in (50, 110, 80):
            await pilot.resize_terminal(width, 24)
            await pilot.pause(0.5)
            assert first_answer() == place
        assert not transcript.at_end


async def test_a_place_in_an_answer_that_has_grown_is_kept_at_another_width(tmp_path: Path) -> None:
    words = " ".join(["words"] * 30)
    text = "\n\n".join(f"Paragraph {number}: {words}" for number in range(40))
    parts = Parts(tmp_path, Script([f"x</think>{text}"]))
    parts.allow = 4000
    async with chat(parts, (100, 30)) as (app, pilot):
        await say(pilot, "Long")
        await wait_until(pilot, lambda: tokens_shown(app) == 4000)
        await pilot.press("pageup", "pageup")
        await wait_until(pilot, lambda: not one(app, Transcript).at_end)
        parts.engine.let(7500)
        await wait_until(pilot, lambda: tokens_shown(app) == 7500)
        await pilot.pause(0.5)

        def first_paragraph() -> int:
            found = re.search(r"Paragraph (\d+)", screen_text(app))
            assert found is not None
            return int(found.group(1))

        place = first_paragraph()
        for width in (96, 70, 100):
            await pilot.resize_terminal(width, 30)
            await pilot.pause(0.5)
            assert abs(first_paragraph() - place) <= 1


def write_history(folder: Path, messages: int) -> None:
    """A conversation of `messages` messages, "message 0" and so on."""
    history = open_history(folder).repository
    talk = history.create_conversation(ConversationSettings()).id
    parent = None
    for number in range(messages):
        role = "user" if number % 2 == 0 else "assistant"
        parent = history.add_message(talk, parent, role, f"message {number}").id
    history.close()
