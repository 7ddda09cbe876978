"""How the app looks at three sizes, dark and light. After a wanted change: pytest --snapshot-update."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from dsv4chat.app.app import ChatApp
from dsv4chat.app.screens.inspector_screen import InspectorScreen
from dsv4chat.app.themes import DARK, LIGHT
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.app.widgets.token_text import TokenText
from dsv4chat.app.widgets.transcript import Transcript
from tests.support.app_parts import Parts, wait_until
from tests.support.fake_engine import Script

Steps = Callable[[Pilot[None]], Coroutine[Any, Any, None]]
SIZES = ((40, 15), (80, 24), (120, 40))
ANSWER = (
    "I know this one.</think>The capital of France is **Paris**:\n\n- on the *Seine*\n"
    "- about `2.1` million\n\n| City | People |\n|---|---:|\n| Paris | 2.1 M |\n| Lyon | 0.5 M |\n"
)


async def ready(pilot: Pilot[None]) -> ChatApp:
    app = pilot.app
    assert isinstance(app, ChatApp)
    await wait_until(pilot, lambda: app.session and app.session.can_send)
    app.chat.query_one(Composer).cursor_blink = False
    return app


async def settle(pilot: Pilot[None], app: ChatApp) -> None:
    await wait_until(pilot, lambda: app.session is not None and not app.session.events)
    await pilot.pause(0.3)
    app.chat.refresh_figures(force=True)
    await pilot.pause()


async def answered(pilot: Pilot[None]) -> None:
    app = await ready(pilot)
    assert app.session is not None
    app.session.submit("What is the capital of France?")
    await wait_until(pilot, lambda: app.session and app.session.can_send and app.session.path)
    await settle(pilot, app)


async def writing(pilot: Pilot[None]) -> None:
    app = await ready(pilot)
    assert app.session is not None
    app.session.submit("What is the capital of France?")
    await wait_until(pilot, lambda: app.chat._latency.tokens == 60)
    app.chat.query_one(Composer).insert("And of")
    await settle(pilot, app)


async def died(pilot: Pilot[None]) -> None:
    await writing(pilot)
    app = pilot.app
    assert isinstance(app, ChatApp)
    assert app.session is not None
    app.session.link.engine.die()  # type: ignore[union-attr]
    await wait_until(pilot, lambda: app.session and not app.session.busy)
    await settle(pilot, app)


async def branched(pilot: Pilot[None]) -> None:
    await answered(pilot)
    app = await ready(pilot)
    assert app.session is not None
    app.session.tree.regenerate()
    await wait_until(pilot, lambda: app.session and app.session.can_send and len(app.session.branches) == 1)
    await settle(pilot, app)  # a new answer on the screen takes the selection away
    app.chat.query_one(Transcript).focus()
    await settle(pilot, app)


async def inspected(pilot: Pilot[None]) -> None:
    await branched(pilot)
    await pilot.press("i")
    await wait_until(pilot, lambda: isinstance(pilot.app.screen, InspectorScreen))
    await pilot.press("right", "right")
    await pilot.pause(0.3)


async def coloured(pilot: Pilot[None]) -> None:
    await branched(pilot)
    await pilot.press("s")
    await wait_until(pilot, lambda: list(pilot.app.screen.query(TokenText)))
    await pilot.pause(0.3)


def two_answers() -> Parts:
    return Parts(None, Script([ANSWER, ANSWER.replace("Lyon", "Lille")]))


def parts(tokens: int | None = None) -> Parts:
    made = Parts(None, Script([ANSWER]))
    made.allow = tokens
    return made


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_an_answer(snap_compare: Callable[..., bool], size: tuple[int, int]) -> None:
    assert snap_compare(parts().app(), terminal_size=size, run_before=answered)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_an_answer_being_written(snap_compare: Callable[..., bool], size: tuple[int, int]) -> None:
    assert snap_compare(parts(60).app(), terminal_size=size, run_before=writing)


@pytest.mark.parametrize("size", SIZES[1:], ids=lambda size: f"{size[0]}x{size[1]}")
def test_an_engine_that_died(snap_compare: Callable[..., bool], size: tuple[int, int]) -> None:
    assert snap_compare(parts(60).app(), terminal_size=size, run_before=died)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_light(snap_compare: Callable[..., bool], size: tuple[int, int]) -> None:
    app = ChatApp(parts().session, LIGHT.name)
    assert app.theme != DARK.name
    assert snap_compare(app, terminal_size=size, run_before=answered)


@pytest.mark.parametrize("theme", [DARK.name, LIGHT.name])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_a_selected_answer_with_a_branch(
    snap_compare: Callable[..., bool], size: tuple[int, int], theme: str
) -> None:
    assert snap_compare(ChatApp(two_answers().session, theme), terminal_size=size, run_before=branched)


@pytest.mark.parametrize("theme", [DARK.name, LIGHT.name])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_a_look_inside_a_token(snap_compare: Callable[..., bool], size: tuple[int, int], theme: str) -> None:
    assert snap_compare(ChatApp(two_answers().session, theme), terminal_size=size, run_before=inspected)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_colours_by_surprise(snap_compare: Callable[..., bool], size: tuple[int, int]) -> None:
    assert snap_compare(two_answers().app(), terminal_size=size, run_before=coloured)


def test_help(snap_compare: Callable[..., bool]) -> None:
    async def open_help(pilot: Pilot[None]) -> None:
        await ready(pilot)
        await pilot.press("f1")
        await pilot.pause(0.3)

    assert snap_compare(parts().app(), terminal_size=SIZES[2], run_before=open_help)


def test_snapshots_hold_no_path_of_this_machine() -> None:
    for path in (Path(__file__).parent / "__snapshots__").rglob("*.raw"):
        assert str(Path.home()) not in path.read_text(encoding="utf-8")
