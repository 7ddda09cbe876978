"""Near the end of the context: a warning ahead, a reason when it is full, leaving out the oldest turns."""

from pathlib import Path

import pytest

from dsv4chat.app.context_room import ContextRoom
from dsv4chat.app.events import Notice
from dsv4chat.app.forgetting import forget
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.encoding import Message
from dsv4chat.engine_process import EngineFailed
from dsv4chat.runtime.protocol_conversations import ConversationCache
from dsv4chat.store import ConversationSettings, open_history
from tests.support.app_parts import Parts, screen_text, wait_for, wait_until
from tests.support.chat import answered, chat, one, say
from tests.support.fake_engine import Script
from tests.support.sessions import ask, prompt_ids, ready


def test_a_conversation_is_warned_about_once_until_it_has_room_again() -> None:
    room = ContextRoom()
    assert room.warning(1, 84, 100) is None
    assert room.warning(1, 85, 100) == (
        "The context is 85 % full; 15 tokens are left. /forget leaves out the oldest turns."
    )
    assert room.warning(1, 99, 100) is None
    assert room.warning(2, 99, 100) == (
        "The context is 99 % full; 1 token is left. /forget leaves out the oldest turns."
    )
    assert room.warning(2, 10, 100) is None
    assert room.warning(2, 90, 100) is not None
    assert room.warning(None, 5, 0) is None  # no engine yet


async def test_the_screen_warns_ahead_and_says_why_an_answer_was_cut_off(tmp_path: Path) -> None:
    script = Script(["abcdefghij" * 10, "abcdefghij" * 3], stop_reason="length")
    parts = Parts(tmp_path, script, settings=ConversationSettings(thinking=False))
    parts.max_context = 120
    parts.room = 11
    async with chat(parts) as (app, pilot):
        await say(pilot, "abc")
        await wait_until(pilot, lambda: "% full" in screen_text(app))
        await answered(pilot, app)
        assert "leaves out the oldest turns." in screen_text(app)
        assert "○ thinking off" in screen_text(app)
        assert app.session is not None
        assert app.session.path[-1].error is None  # a limit of the person's own
        parts.engine.room = 0
        await say(pilot, "abc")
        await answered(pilot, app, 2)
        assert app.session.path[-1].state == "length"
        assert "is full. /forget leaves out the oldest turns." in (app.session.path[-1].error or "")
        assert "cut off: the length limit was reached" in screen_text(app)


async def test_a_prompt_that_does_not_fit_says_how_to_make_it_fit(tmp_path: Path) -> None:
    refused = EngineFailed("ContextOverflowError", "The prompt has 9,000 tokens; the context holds 8,192.")
    session = await ready(Parts(tmp_path, Script([refused])))
    await ask(session, "long")
    assert session.path[-1].error == f"{refused} /forget leaves out the oldest turns."
    await session.close()


async def test_forgotten_turns_are_left_out_of_the_prompt_and_stay_in_the_history(tmp_path: Path) -> None:
    mode = ConversationSettings(thinking=False)
    parts = Parts(tmp_path, Script([f"Answer {n}" for n in range(5)]), settings=mode)
    session = await ready(parts)
    for number in range(4):
        await ask(session, f"Question {number}")
    session.events.clear()
    said = forget(session)
    assert said.startswith("The oldest 2 turns are left out from now on but can still be read;")
    await wait_for(lambda: not session._tasks)
    (cost,) = [event.sentence for event in session.events if isinstance(event, Notice)]
    kept = [
        Message("user", "Question 2"),
        Message("assistant", "Answer 2"),
        Message("user", "Question 3"),
        Message("assistant", "Answer 3"),
    ]
    blank = prompt_ids(parts, *kept, Message("user", ""), thinking=False)
    whole = parts.engine.asked[-1]
    shared = next(index for index, (a, b) in enumerate(zip(blank, whole, strict=False)) if a != b)
    assert f"reads {len(blank) - shared:,} tokens of the conversation again" in cost
    await ask(session, "Question 4")
    assert parts.engine.asked[-1] == prompt_ids(parts, *kept, Message("user", "Question 4"), thinking=False)
    assert len(session.path) == 10
    await session.close()

    again = Parts(tmp_path, Script(["Answer 5"]), settings=mode)  # and after a restart
    later = await ready(again)
    await ask(later, "Question 5")
    assert again.engine.asked[-1][: len(blank) - 4] == blank[:-4]
    assert forget(later, 0) == "The whole conversation is sent again."
    assert forget(later, 0) == "Nothing of this conversation is left out."
    await ask(later, "Question 6")
    assert again.engine.asked[-1][: len(whole) - 4] == whole[:-4]
    await later.close()
    history = open_history(tmp_path).repository
    latest = history.latest_conversation()
    assert latest is not None
    assert latest.settings.start is None
    history.close()


@pytest.mark.parametrize(
    ("turns", "asked", "left"),
    [(1, 3, 2), (2, 3, 1), (9, 3, 1), (None, 3, 2), (None, 1, 1), (3, 1, 1)],
)
async def test_the_newest_turn_always_stays(tmp_path: Path, turns: int | None, asked: int, left: int) -> None:
    mode = ConversationSettings(thinking=False)
    parts = Parts(tmp_path, Script(["Answer"] * 4), settings=mode)
    session = await ready(parts)
    for _ in range(asked):
        await ask(session, "Question")
    forget(session, turns)
    await ask(session, "Last")
    turn = [Message("user", "Question"), Message("assistant", "Answer")]
    assert parts.engine.asked[-1] == prompt_ids(parts, *turn * left, Message("user", "Last"), thinking=False)
    await session.close()


async def test_the_command_takes_a_number_and_the_caches_can_be_looked_at(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["a</think>b"] * 3))
    async with chat(parts) as (app, pilot):
        parts.engine.caches.figures = [
            ConversationCache(
                conversation="1",
                tokens=1234,
                branches=3,
                live_bytes=1_000_000,
                memory_bytes=200_000,
                disk_bytes=1_100_000,
            )
        ]
        for number in range(2):
            await say(pilot, "Hello")
            await answered(pilot, app, number + 1)
        await wait_until(pilot, lambda: "cache 1.2 MB" in screen_text(app))
        await say(pilot, "/forget one")
        await wait_until(pilot, lambda: "/forget takes a number of turns, not 'one'." in screen_text(app))
        composer = one(app, Composer)
        composer.text = f"/forget {'7' * 5000}"
        await pilot.press("enter")
        await wait_until(pilot, lambda: "7777…'." in screen_text(app))
        composer.clear()
        await say(pilot, "/forget 1")
        await wait_until(pilot, lambda: "The oldest turn is left out" in screen_text(app))
        await say(pilot, "/caches")
        await wait_until(pilot, lambda: "Caches of conversations" in screen_text(app))
        (line,) = [line for line in screen_text(app).splitlines() if "1,234" in line]
        assert line.split()[1:7] == ["Hello", "1,234", "3", "1.0", "MB", "200"]
        assert "1.1 MB" in line
