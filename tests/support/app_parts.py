"""Parts of the app for its tests: sessions over a fake engine, and waiting for what the screen shows."""

import asyncio
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from textual.pilot import Pilot

from dsv4chat.app.app import ChatApp
from dsv4chat.app.engine_link import TextSide
from dsv4chat.app.preferences import Preferences
from dsv4chat.app.session import ChatSession
from dsv4chat.encoding import Profile, Tokenizer
from dsv4chat.runtime.protocol import Load
from dsv4chat.store import BackgroundStore, ConversationSettings
from tests.support.fake_engine import FakeEngine, Script
from tests.support.small_tokenizer import tokenizer_definition

PATIENCE = 30.0  # seconds


class Ticks:
    """A clock that goes on by `step` seconds each time it is read."""

    def __init__(self, step: float = 0.0) -> None:
        self.now = 0.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@cache
def small_tokenizer() -> Tokenizer:
    import json

    return Tokenizer(json.dumps(tokenizer_definition()))


class Parts:
    """A session over fake engines; `engines` are those made so far."""

    def __init__(
        self,
        folder: Path | None,
        script: Script | None = None,
        *,
        settings: ConversationSettings | None = None,
        profile: Profile = Profile.PREVIEW,
        tokenizer: Tokenizer | None = None,
        clock: Callable[[], float] | None = None,
        notice: str | None = None,
    ) -> None:
        self.folder = folder
        self.script = script or Script()
        self.load = Load(model="demo")
        self.engines: list[FakeEngine] = []
        self.tokenizer = tokenizer or small_tokenizer()
        self.allow: int | None = None
        self.max_context = 8192
        self.room: int | None = None
        self.text = TextSide(self.tokenizer, "small", profile, notice)
        self.settings = settings
        self.clock = clock or Ticks()
        self.preferences: Preferences | None = None

    @property
    def engine(self) -> FakeEngine:
        return self.engines[-1]

    def make_engine(self) -> FakeEngine:
        engine = FakeEngine(self.tokenizer, self.script)
        engine.allow = self.allow
        engine.max_context, engine.room = self.max_context, self.room
        self.engines.append(engine)
        return engine

    def session(self) -> ChatSession:
        return ChatSession(
            make_engine=self.make_engine,
            read_text=lambda: self.text,
            load=self.load,
            store=BackgroundStore(self.folder),
            settings=self.settings,
            preferences=self.preferences,
            clock=self.clock,
        )

    def app(self) -> ChatApp:
        return ChatApp(self.session)


async def wait_for(predicate: Callable[[], object], what: str = "") -> None:
    """Until `predicate` holds; fails with `what` after `PATIENCE` seconds."""
    end = time.monotonic() + PATIENCE
    while not predicate():
        if time.monotonic() > end:
            raise AssertionError(f"did not happen within {PATIENCE:.0f} s: {what or predicate}")
        await asyncio.sleep(0.01)


async def wait_until(pilot: Pilot[None], predicate: Callable[[], object], what: str = "") -> None:
    """Until `predicate` holds and the screen has settled."""
    end = time.monotonic() + PATIENCE
    while not predicate():
        if time.monotonic() > end:
            raise AssertionError(f"did not happen within {PATIENCE:.0f} s: {what or predicate}")
        await pilot.pause(0.02)
    await pilot.pause()


def screen_text(app: ChatApp) -> str:
    """What the terminal shows, line by line."""
    width, height = app.size
    rows = app.screen._compositor.render_strips()[:height]
    return "\n".join("".join(segment.text for segment in strip)[:width].rstrip() for strip in rows)
