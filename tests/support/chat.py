"""The whole app over a scripted engine, and what a person does with it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from textual.pilot import Pilot
from textual.widget import Widget

from dsv4chat.app.app import ChatApp
from dsv4chat.app.widgets.composer import Composer
from tests.support.app_parts import Parts, wait_until

W = TypeVar("W", bound=Widget)
THOUGHT = "Let me see.</think>The capital is **Paris**."


@asynccontextmanager
async def chat(
    parts: Parts, size: tuple[int, int] = (120, 40), *, ready: bool = True
) -> AsyncIterator[tuple[ChatApp, Pilot[None]]]:
    app = parts.app()
    async with app.run_test(size=size, notifications=True) as pilot:
        await wait_until(pilot, lambda: app.session is not None)
        if ready:
            await wait_until(pilot, lambda: app.session and app.session.can_send)
            await pilot.pause(0.1)
        yield app, pilot


def one(app: ChatApp, kind: type[W]) -> W:
    return app.chat.query_one(kind)


async def say(pilot: Pilot[None], text: str) -> None:
    composer = pilot.app.screen.query_one(Composer)
    composer.insert(text)
    await pilot.press("enter")


async def answered(pilot: Pilot[None], app: ChatApp, count: int = 1) -> None:
    def done() -> bool:
        session = app.session
        return bool(
            session
            and not session.busy
            and not session.events
            and sum(record.role == "assistant" for record in session.path) >= count
        )

    await wait_until(pilot, done)
    await pilot.pause(0.1)


def tokens_shown(app: ChatApp) -> int:
    return app.chat._latency.tokens
