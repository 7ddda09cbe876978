"""What reaches the terminal piece by piece against what Textual's own compositor draws of them."""

import random
from pathlib import Path

import pyte
import pytest
from textual._compositor import ChopsUpdate, Compositor, LayoutUpdate
from textual.pilot import Pilot
from textual.screen import Screen

from dsv4chat.app.app import ChatApp
from dsv4chat.app.quick_compositor import QuickCompositor
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.app.widgets.transcript import Transcript
from tests.app.test_scroll_flows import write_history
from tests.support.app_parts import Parts, wait_until
from tests.support.chat import chat, one
from tests.support.fake_engine import Script

ANSWER = """First **some** words, which are long enough to be wrapped on every terminal of this test.

- one
- two, with `code`

| a | b |
|---|---|
| 1 | 2 |

```python
for line in lines:
    print(line)
```

> A quotation.

"""
KEYS = (
    *["x"] * 6,
    *["pageup", "pagedown", "end", "ctrl+home", "enter", "ctrl+r", "ctrl+b", "ctrl+t", "slash"] * 2,
    *("backspace", "escape", "up", "alt+up", "s", "f1", "f3"),
)


class Terminal:
    """Shows what the chat's screen was drawn with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]) -> None:
        self.resize(size)
        self.partial = 0
        display = ChatApp._display

        def show(app: ChatApp, screen: Screen[object], update: object) -> None:
            display(app, screen, update)  # type: ignore[arg-type]
            if not app._batch_count and isinstance(update, (ChopsUpdate, LayoutUpdate)):
                self.partial += isinstance(update, ChopsUpdate)
                self._stream.feed(update.render_segments(app.console).replace("\n", "\r\n"))

        monkeypatch.setattr(ChatApp, "_display", show)

    def resize(self, size: tuple[int, int]) -> None:
        self.screen = pyte.Screen(*size)
        self.screen.reset_mode(pyte.modes.DECAWM)
        self._stream = pyte.Stream(self.screen)

    def cells(self) -> list[list[pyte.screens.Char]]:
        lines, columns = self.screen.lines, self.screen.columns
        return [[self.screen.buffer[y][x] for x in range(columns)] for y in range(lines)]


def drawn_anew(app: ChatApp) -> list[list[pyte.screens.Char]]:
    """The screen by Textual's compositor."""
    compositor = Compositor()
    compositor.reflow(app.screen, app.size)
    update = compositor.render_update(full=True, screen_stack=app._background_screens)
    assert isinstance(update, LayoutUpdate)
    screen = pyte.Screen(*app.size)
    screen.reset_mode(pyte.modes.DECAWM)
    pyte.Stream(screen).feed(update.render_segments(app.console).replace("\n", "\r\n"))
    return [[screen.buffer[y][x] for x in range(app.size.width)] for y in range(app.size.height)]


async def agree(pilot: Pilot[None], app: ChatApp, terminal: Terminal, what: str) -> None:
    for _ in range(60):
        await pilot.pause(0.05)
        if terminal.cells() == drawn_anew(app):
            return
    shown, wanted = terminal.cells(), drawn_anew(app)
    lines = [
        f"{y}: {''.join(c.data for c in shown[y])!r}\n  not {''.join(c.data for c in wanted[y])!r}"
        for y in range(app.size.height)
        if shown[y] != wanted[y]
    ]
    raise AssertionError(f"{what}\n" + "\n".join(lines))


@pytest.mark.parametrize("seed", range(3))
async def test_the_terminal_shows_what_textual_would_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.chdir(tmp_path)  # "/export" may be among what is pressed
    chance = random.Random(seed)
    size = [(120, 40), (80, 24), (44, 17)][seed]
    write_history(tmp_path, 30)
    parts = Parts(tmp_path, Script([f"I think.\nA lot.</think>{ANSWER * 3}"] * 40))
    parts.allow = 0
    terminal = Terminal(monkeypatch, size)
    async with chat(parts, size) as (app, pilot):
        assert isinstance(app.chat._compositor, QuickCompositor)
        await wait_until(pilot, lambda: one(app, Transcript).messages.records)
        done: list[str] = []
        for _ in range(60):
            if app.screen is app.chat and chance.random() < 0.4:
                done.append("tokens")
                parts.engine.let((parts.engine.allow or 0) + chance.randrange(1, 90))
                await pilot.pause(0.05)
            elif app.screen is app.chat:
                done.append(chance.choice(KEYS))
                await pilot.press(done[-1])
            else:
                done.append("escape")
                await pilot.press("escape")
            await agree(pilot, app, terminal, " ".join(done))
        assert terminal.partial > 60


async def test_a_widget_scrolled_away_has_a_place_and_a_hidden_one_has_none(tmp_path: Path) -> None:
    write_history(tmp_path, 30)
    async with chat(Parts(tmp_path), (80, 24)) as (app, pilot):
        transcript = one(app, Transcript)
        await wait_until(pilot, lambda: transcript.messages.records)
        above, below = transcript.messages.mounted[0], transcript.messages.mounted[-1]
        assert above not in app.chat._compositor.visible_widgets
        assert above.region.y < 0 < below.region.y
        assert above.region.height == Compositor.find_widget(app.chat._compositor, above).region.height > 0
        one(app, Composer).display = False
        await pilot.pause()
        assert not one(app, Composer).region
