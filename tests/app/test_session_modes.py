"""Thinking and effort: what a change of them costs."""

from pathlib import Path

import pytest

from dsv4chat.app.events import (
    ModeChanged,
    Notice,
)
from dsv4chat.encoding import Profile
from dsv4chat.store import ConversationSettings
from tests.support.app_parts import Parts, wait_for
from tests.support.fake_engine import Script
from tests.support.sessions import THOUGHT, ask, ready


@pytest.mark.parametrize(
    ("profile", "before", "after", "costs"),
    [
        (Profile.PREVIEW, (True, None), (True, "max"), True),
        (Profile.PREVIEW, (True, None), (True, "high"), False),
        (Profile.CURRENT, (True, None), (True, "low"), True),
        (Profile.CURRENT, (True, None), (False, None), True),
        (Profile.CURRENT, (True, "low"), (False, None), False),
    ],
)
async def test_a_change_of_mode_that_costs_a_prefill_is_told(
    tmp_path: Path,
    profile: Profile,
    before: tuple[bool, str | None],
    after: tuple[bool, str | None],
    costs: bool,
) -> None:
    settings = ConversationSettings(thinking=before[0], effort=before[1])
    parts = Parts(tmp_path, Script([THOUGHT]), profile=profile, settings=settings)
    session = await ready(parts)
    await ask(session, "What is the capital of France, please?")
    session.events.clear()
    session.set_mode(*after)
    await wait_for(lambda: len(session._tasks) == 0)
    assert isinstance(session.events[0], ModeChanged)
    told = [event.sentence for event in session.events if isinstance(event, Notice)]
    assert bool(told) == costs
    if costs:
        assert "reads" in told[0]
        assert "again" in told[0]
        session.events.clear()
        session.set_mode(*before)  # what was read before is still there
        await wait_for(lambda: len(session._tasks) == 0)
        assert not [event for event in session.events if isinstance(event, Notice)]
    await session.close()


async def test_a_change_of_mode_without_a_conversation_costs_nothing(tmp_path: Path) -> None:
    session = await ready(Parts(tmp_path))
    session.events.clear()
    session.set_mode(True, "max")
    await wait_for(lambda: len(session._tasks) == 0)
    assert [type(event) for event in session.events] == [ModeChanged]
    session.set_mode(True, "max")
    assert len(session.events) == 1
    await session.close()
