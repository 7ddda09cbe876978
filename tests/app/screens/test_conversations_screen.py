"""The list of conversations of a large history: opened at once, and all of it can be reached."""

import time
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from dsv4chat.app.app import ChatApp
from dsv4chat.app.screens.conversations_screen import ConversationsScreen
from dsv4chat.store import open_history
from tests.support.app_parts import Parts, screen_text, wait_until
from tests.support.chat import chat

MANY = 5_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history of `MANY` conversations; number n was used n-th, so that the first one is the oldest."""
    folder = tmp_path_factory.mktemp("large")
    history = open_history(folder).repository
    with history.transaction() as connection:
        connection.executemany(
            "INSERT INTO conversation (id, title, title_by, created, updated) VALUES (?, ?, 'text', ?, ?)",
            ((number, f"Title {number}.", number, number) for number in range(1, MANY + 1)),
        )
        connection.executemany(
            "INSERT INTO message (id, conversation_id, role, content, created, updated)"
            " VALUES (?, ?, 'user', ?, 0, 0)",
            ((number, number, f"Question {number}.") for number in range(1, MANY + 1)),
        )
        connection.execute("UPDATE conversation SET active_leaf = id")
    history.close()
    return folder


async def opened(app: ChatApp, pilot: Pilot[None]) -> OptionList:
    await pilot.press("ctrl+o")
    await wait_until(pilot, lambda: isinstance(app.screen, ConversationsScreen))
    await wait_until(pilot, lambda: f"Title {MANY}." in screen_text(app))
    return app.screen.query_one(OptionList)


async def test_the_list_of_many_opens_in_less_than_a_second(large: Path) -> None:
    async with chat(Parts(large)) as (app, pilot):
        taken = []
        for _ in range(3):
            begun = time.monotonic()
            await opened(app, pilot)
            taken.append(time.monotonic() - begun)
            await pilot.press("escape")
            await wait_until(pilot, lambda: app.screen is app.chat)
        print("opened after", *(f"{seconds:.2f}" for seconds in taken), "s")
        assert min(taken) < 1.0


async def test_the_keys_reach_the_oldest_of_many_and_open_it(large: Path) -> None:
    async with chat(Parts(large)) as (app, pilot):
        options = await opened(app, pilot)
        presses = 0
        while options.option_count < MANY:
            before = options.option_count
            await pilot.press("end")
            presses += 1
            await wait_until(pilot, lambda before=before: options.option_count > before)  # type: ignore[misc]
        assert presses < 12
        shown = [str(option.prompt).split(".")[0] for option in options.options]
        assert shown == [f"Title {number}" for number in range(MANY, 0, -1)]
        await pilot.press("end")
        await wait_until(pilot, lambda: "Title 1." in screen_text(app))
        await pilot.press("enter")
        await wait_until(pilot, lambda: "Question 1." in screen_text(app))
        assert app.session is not None
        assert app.session.record is not None
        assert app.session.record.id == 1


async def test_scrolling_with_the_mouse_reads_on_and_shows_none_twice(large: Path) -> None:
    async with chat(Parts(large)) as (app, pilot):
        options = await opened(app, pilot)
        assert app.session is not None
        history = open_history(large).repository
        with history.transaction() as connection:  # another program uses an old one: all others move down
            connection.execute("UPDATE conversation SET updated = ? WHERE id = 7", (MANY + 1,))
        try:
            count = options.option_count
            assert count < MANY
            options.scroll_end(animate=False)
            await wait_until(pilot, lambda: options.option_count > count)
            shown = [str(option.prompt).split(".")[0] for option in options.options]
            assert shown == [f"Title {number}" for number in range(MANY, MANY - len(shown), -1)]
            assert options.highlighted == 0
        finally:
            with history.transaction() as connection:
                connection.execute("UPDATE conversation SET updated = 7 WHERE id = 7")
            history.close()
