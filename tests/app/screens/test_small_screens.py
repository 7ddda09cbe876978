"""The small screens, each alone over an empty app: what they show and what they give back."""

import pytest
from textual.binding import Binding

from dsv4chat.app.screens.caches_screen import CachesScreen
from dsv4chat.app.screens.effort_screen import EffortScreen
from dsv4chat.app.screens.help_screen import HelpScreen
from dsv4chat.app.screens.quit_screen import QuitScreen
from dsv4chat.runtime.protocol_conversations import ConversationCache
from tests.support.host import drawn, hosted_screen


@pytest.mark.parametrize(
    ("key", "wanted"),
    [("enter", True), ("y", True), ("ctrl+c", True), ("escape", False), ("n", False)],
)
async def test_quitting_is_asked_for(key: str, wanted: bool) -> None:
    async with hosted_screen(QuitScreen) as (host, pilot, given):
        assert "Quit?" in drawn(host)
        await pilot.press("x")
        assert given == []
        await pilot.press(key)
        assert given == [wanted]


@pytest.mark.parametrize(
    ("current", "keys", "choice"),
    [
        (None, ["enter"], ""),
        ("max", ["enter"], "max"),
        ("max", ["up", "enter"], "high"),
        (None, ["down", "enter"], "low"),
        ("no such effort", ["enter"], ""),
        ("low", ["escape"], None),
    ],
)
async def test_the_effort_menu_begins_at_what_is_set(
    current: str | None, keys: list[str], choice: str | None
) -> None:
    async with hosted_screen(lambda: EffortScreen(current)) as (host, pilot, given):
        for word in ("default", "low", "high", "max", "Esc leaves it as it is"):
            assert word in drawn(host)
        await pilot.press(*keys)
        assert given == [choice]


def cache(conversation: str, tokens: int, memory: int = 0) -> ConversationCache:
    return ConversationCache(
        conversation=conversation,
        tokens=tokens,
        branches=2,
        live_bytes=8_800_000,
        memory_bytes=memory,
        disk_bytes=0,
    )


async def test_the_caches_of_conversations_are_a_table_with_titles() -> None:
    caches = [cache("7", 12_345), cache("8", 5, 1000), cache("9", 1), cache("ask", 3)]
    titles = {7: "A \x1b[31mred\x1b[0m title", 8: "long " * 20}
    async with hosted_screen(lambda: CachesScreen(caches, titles, "/somewhere"), (110, 20)) as (
        host,
        pilot,
        given,
    ):
        shown = drawn(host)
        rows = [line.strip("│ ") for line in shown.split("\n") if "8.8 MB" in line]
        assert "/somewhere" in shown
        assert [row[:35].strip() for row in rows] == [
            "A ␛[31mred␛[0m title",
            "long long long long long long lon…",
            "(no title)",
            "ask",
        ]
        assert rows[0].split()[-6:] == ["12,345", "2", "8.8", "MB", "–", "–"]
        assert rows[1].split()[-7:] == ["5", "2", "8.8", "MB", "1.0", "kB", "–"]
        await pilot.press("escape")
        assert given == [None]


async def test_no_caches_yet() -> None:
    async with hosted_screen(lambda: CachesScreen([], {}, None)) as (host, _, _given):
        assert "No conversation was used since the engine was started." in drawn(host)
        assert "nothing is saved" in drawn(host)


async def test_help_names_the_keys_that_are_in_force() -> None:
    own = {
        "stop": Binding("escape", "stop", "Stop", id="stop"),
        "edit": Binding("e", "edit", "Edit", tooltip="Change it and send it again", id="edit"),
    }
    async with hosted_screen(lambda: HelpScreen(own, {"stop": "f9"}, ("edit",)), (110, 90)) as (
        host,
        pilot,
        given,
    ):
        lines = [line.strip("│ ") for line in drawn(host).split("\n")]
        assert any(line.startswith("E ") and "Change it and send it again" in line for line in lines)
        assert any("/forget" in line for line in lines), "commands without a key are there by their name"
        await pilot.press("f1")
        assert given == [None]
