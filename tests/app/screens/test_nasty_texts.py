"""Nasty titles, prompts, excerpts, code and logs on the screens that list or edit them: nothing is obeyed."""

import random
from pathlib import Path

from textual.app import App
from textual.screen import Screen

from dsv4chat.app.code_blocks import CodeBlock
from dsv4chat.app.screens.code_screen import CodeScreen
from dsv4chat.app.screens.conversation_screen import ConversationScreen
from dsv4chat.app.screens.conversations_screen import ConversationsScreen
from dsv4chat.app.screens.log_screen import LogScreen
from dsv4chat.app.screens.search_screen import SearchScreen
from dsv4chat.app.themes import DARK
from dsv4chat.store import ConversationSettings, ConversationSummary, Found, open_in_memory
from tests.support.fuzz import check_screen, nasty, nasty_bytes


class Empty(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.register_theme(DARK)
        self.theme = DARK.name


async def search(words: str, before: int | None) -> list[Found]:
    """What a real history finds for `words` among nasty texts."""
    rng = random.Random(len(words))
    history = open_in_memory()
    for _ in range(12):
        talk = history.create_conversation(ConversationSettings()).id
        history.rename(talk, nasty(rng))
        text = f"{nasty(rng)} zebra {nasty(rng)}"
        history.add_message(talk, None, "assistant", "" if rng.random() < 0.5 else text, reasoning=text)
    found = history.search(words)
    history.close()
    assert len(found) == 12
    return found


def screens(rng: random.Random, folder: Path) -> list[Screen[object]]:
    log = folder / "engine.log"
    log.write_bytes(b"\n".join(nasty_bytes(rng) for _ in range(20)))
    summaries = [ConversationSummary(n, nasty(rng), 0.0, 1, nasty(rng)) for n in range(10)]
    settings = ConversationSettings(system=_kept(nasty(rng)))
    made: list[object] = [
        ConversationsScreen(summaries, no_more, 1, now=100.0),
        ConversationScreen(_kept(nasty(rng)), settings, {}),
        SearchScreen(search, "zebra", now=lambda: 100.0),
        CodeScreen([CodeBlock(_kept(nasty(rng)), nasty(rng)) for _ in range(5)]),
        LogScreen(log),
    ]
    return made  # type: ignore[return-value]


async def no_more(limit: int, offset: int) -> list[ConversationSummary]:
    return []


def _kept(text: str) -> str:
    """`text` as it comes out of the history, which holds no halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode()


async def test_screens_show_nasty_texts_and_obey_none(tmp_path: Path) -> None:
    rng = random.Random(9)
    app = Empty()
    async with app.run_test(size=(80, 40)) as pilot:
        for _ in range(4):
            for screen in screens(rng, tmp_path):
                await app.push_screen(screen)
                await pilot.pause(0.3 if isinstance(screen, SearchScreen) else 0.05)
                drawn = check_screen(app)
                assert not isinstance(screen, SearchScreen) or "12 messages" in drawn
                await app.pop_screen()
