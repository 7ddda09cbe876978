"""The pictures in docs/images, taken of the real app with the real engine and model: `make screenshots`.

Nothing in them is made up: each picture is what the app shows after its steps, in a home of its own.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from textual.pilot import Pilot

from dsv4chat.app.app import ChatApp
from dsv4chat.app.options import ChatOptions

IMAGES = Path(__file__).parent / "images"
PATIENCE = 120.0  # seconds for one step


@dataclass(frozen=True)
class Picture:
    """name: of the file. questions: asked one after the other. keys: pressed in the end."""

    name: str
    size: tuple[int, int]
    theme: str
    questions: tuple[str, ...]
    keys: tuple[str, ...] = ()


PICTURES = (
    Picture(
        "chat",
        (120, 36),
        "dsv4-dark",
        ("What is the capital of France?", "What is its currency?", "What is 47 + 38?"),
        ("ctrl+r",),
    ),
    Picture("chat-light", (120, 36), "dsv4-light", ("What is 128 + 64?", "What is the capital of Japan?")),
    Picture("chat-narrow", (80, 24), "dsv4-dark", ("What is the capital of Norway?",)),
)


async def take(picture: Picture) -> None:
    """Run the app through the steps of one picture and save it."""

    def make_session() -> object:
        from dsv4chat.app.assembly import build_session

        return build_session(ChatOptions())

    app = ChatApp(make_session, picture.theme)  # type: ignore[arg-type]
    async with app.run_test(size=picture.size) as pilot:
        await until(pilot, lambda: app.session is not None and app.session.can_send)
        for number, question in enumerate(picture.questions, 1):
            assert app.session is not None
            app.session.submit(question)
            await until(pilot, lambda count=2 * number: finished(app, count))
        await pilot.press(*picture.keys)
        await pilot.pause(1.0)
        IMAGES.mkdir(exist_ok=True)
        path = IMAGES / f"{picture.name}.svg"
        path.write_text(app.export_screenshot(title="dsv4chat"), encoding="utf-8")
        print(path)


def finished(app: ChatApp, messages: int) -> bool:
    """Whether the conversation has so many messages, all of them shown."""
    session = app.session
    return session is not None and session.can_send and len(session.path) == messages and not session.events


async def until(pilot: Pilot[None], predicate: Callable[[], bool]) -> None:
    """Wait for something; TimeoutError if it takes too long."""
    end = time.monotonic() + PATIENCE
    while not predicate():
        if time.monotonic() > end:
            raise TimeoutError("the app did not get there; is the demo model in assets/demo?")
        await pilot.pause(0.1)


async def main() -> None:
    for picture in PICTURES:
        with tempfile.TemporaryDirectory() as home:
            os.environ["DSV4CHAT_HOME"] = home
            os.environ["DSV4CHAT_SAMPLING__SEED"] = "1"
            await take(picture)


if __name__ == "__main__":
    asyncio.run(main())
