"""Terminals of all sizes, and text that would harm one."""

from pathlib import Path

import pytest
from textual.command import CommandList
from textual.geometry import Size

from dsv4chat.app.screens.palette import Palette
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.app.widgets.metrics_line import MetricsLine
from dsv4chat.app.widgets.residual_panel import ResidualPanel
from tests.support.app_parts import Parts, screen_text, wait_until
from tests.support.chat import THOUGHT, answered, chat, one, say, tokens_shown
from tests.support.fake_engine import Script

NASTY = (
    "[red]x[/red] \x1b[31mred\x1b]52;c;QUJD\x07 \u202eabc\u202c &#x202e; <b>bold</b> \x9b1m [a](javascript:x)"
)


async def test_markup_and_escape_sequences_of_the_model_are_shown_not_obeyed(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([f"{NASTY}</think>{NASTY}\n\n- {NASTY}\n\n```\n{NASTY}\n```\n\n{NASTY}"]))
    async with chat(parts, (200, 60)) as (app, pilot):
        await pilot.press("ctrl+r")
        await say(pilot, NASTY)
        await answered(pilot, app)
        shown = screen_text(app)
        assert shown.count("[red]x[/red]") == 7  # the title is the question's
        assert shown.count("␛[31mred␛]52;c;QUJD␇") == 6  # a title is without
        assert shown.count("<U+009B>1m") == 6
        assert shown.count("<b>bold</b>") == 7
        for character in "\x1b\x07\x9b\u202e\u202c":
            assert character not in shown


@pytest.mark.parametrize(
    ("size", "panels", "metrics"),
    [((120, 40), True, False), ((80, 24), False, True), ((40, 15), False, False), ((200, 60), True, False)],
)
async def test_the_screen_fits_small_and_large_terminals(
    tmp_path: Path, size: tuple[int, int], panels: bool, metrics: bool
) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT])), size) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
        await pilot.pause(0.3)
        lines = screen_text(app).splitlines()
        assert len(lines) == size[1]
        assert all(len(line) <= size[0] for line in lines)
        assert "The capital is Paris." in "\n".join(lines)
        assert ("Latency" in "\n".join(lines)) == panels
        assert (one(app, MetricsLine).region.height == 1) == metrics
        assert one(app, Composer).size.height >= 1


@pytest.mark.parametrize("size", [(100, 20), (100, 30), (120, 40), (200, 60)])
async def test_the_columns_of_x_are_there_wherever_panels_are(tmp_path: Path, size: tuple[int, int]) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT])), size) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
        await wait_until(pilot, lambda: "at layer" in screen_text(app))
        shown = screen_text(app)
        assert "10⁰" in shown
        assert ("L8" in shown) == (size[1] >= 29)
        panel = one(app, ResidualPanel).region
        assert app.screen.region.contains_region(panel)


async def test_panels_go_below_the_conversation_where_there_is_no_room_beside_it(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT])), (80, 24)) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
        await pilot.press("ctrl+b")
        await wait_until(pilot, lambda: "at layer" in screen_text(app) and "Latency" in screen_text(app))
        assert "The capital is Paris." in screen_text(app)
        assert one(app, Composer).size.height >= 1
        await pilot.press("ctrl+b")
        await wait_until(pilot, lambda: "Latency" not in screen_text(app))
        assert one(app, MetricsLine).region.height == 0
        await pilot.press("ctrl+b")
        await wait_until(pilot, lambda: one(app, MetricsLine).region.height == 1)
        await pilot.press("ctrl+b")
        await pilot.resize_terminal(120, 40)
        await wait_until(pilot, lambda: one(app, ResidualPanel).region.height == 19)
        await pilot.resize_terminal(40, 15)
        await pilot.press("ctrl+b")
        await wait_until(pilot, lambda: "panels need" in screen_text(app))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_figures_are_those_of_the_conversation_that_is_shown(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT, THOUGHT])), size) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
        await wait_until(pilot, lambda: "tok/s" in screen_text(app))
        session = app.session
        assert session is not None
        session.open_conversation(1, session.path[0].id)  # a place in the same one, as a search gives it
        await wait_until(pilot, lambda: session.can_send and not session.events)
        app.chat.refresh_figures(force=True)
        await pilot.pause()
        assert "tok/s" in screen_text(app)
        await pilot.press("ctrl+n")
        await wait_until(pilot, lambda: "no tokens yet" in screen_text(app))
        assert "tok/s" not in screen_text(app)
        await say(pilot, "Again?")
        await answered(pilot, app)
        await wait_until(pilot, lambda: "tok/s" in screen_text(app))


@pytest.mark.parametrize("width", [*range(41, 57, 2), 12, 6])
@pytest.mark.parametrize("typed", ["", "x"])
async def test_a_window_may_become_narrow_at_once(tmp_path: Path, width: int, typed: str) -> None:
    text = "A list:\n\n- with code\n\n  ```python\n  x = 1\n  ```\n\n```\nmore of it\n```\n\n- - nested\n"
    async with chat(Parts(tmp_path, Script([f"x</think>{text}"])), (100, 30)) as (app, pilot):
        await say(pilot, "Code")
        await answered(pilot, app)
        await pilot.press(*typed)
        await pilot.resize_terminal(width, 24)
        await pilot.pause(0.2)
        assert app.size.width == width
        await pilot.resize_terminal(100, 30)
        await wait_until(pilot, lambda: "more of it" in screen_text(app))


async def test_under_another_screen_the_chat_is_put_together_for_its_size(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path), (120, 40)) as (app, pilot):
        await pilot.press("f1")
        await wait_until(pilot, lambda: app.screen is not app.chat)
        await pilot.resize_terminal(60, 16)
        await pilot.pause(0.2)
        assert app.chat.has_class("-middle", "-flat")
        assert not app.chat.has_class("-wide")
        await pilot.press("escape")
        await wait_until(pilot, lambda: app.screen is app.chat)
        assert not app.chat.query_one("#panels").display


async def test_the_input_is_as_high_as_its_text_at_every_width(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path), (40, 24)) as (app, pilot):
        composer = one(app, Composer)
        await pilot.press(*"wrapped_on_a_terminal_of_forty_columns_only")
        await wait_until(pilot, lambda: composer.size.height == 2)
        await pilot.resize_terminal(100, 24)
        await wait_until(pilot, lambda: composer.size.height == 1)
        await pilot.resize_terminal(40, 24)
        await wait_until(pilot, lambda: composer.size.height == 2)


async def test_resizing_during_an_answer_keeps_everything(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    parts.allow = 20
    async with chat(parts) as (app, pilot):
        await say(pilot, "Capital?")
        await wait_until(pilot, lambda: tokens_shown(app) == 20)
        for size in ((40, 15), (200, 60), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause(0.1)
        parts.engine.let(None)
        await answered(pilot, app)
        assert "The capital is Paris." in screen_text(app)


@pytest.mark.parametrize("size", [(20, 6), (10, 3), (1, 1), (300, 100)])
async def test_absurd_sizes_harm_nothing(tmp_path: Path, size: tuple[int, int]) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT])), size) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
        await pilot.press("f1", "escape", "ctrl+g", "escape", "ctrl+o", "escape", "ctrl+b", "ctrl+r")
        await pilot.resize_terminal(120, 40)
        await wait_until(pilot, lambda: "The capital is Paris." in screen_text(app))


@pytest.mark.parametrize(
    "size", [(40, 1), (40, 2), (40, 3), (40, 4), (40, 5), (4, 4), (2, 20), (6, 10), (10, 5)]
)
async def test_lists_in_a_tiny_window_take_every_key(tmp_path: Path, size: tuple[int, int]) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT])), size) as (app, pilot):
        palette = ["ctrl+p"] if Palette.fits(Size(*size)) else []
        for opening in (*palette, "ctrl+o", "ctrl+g", "ctrl+f", "f1", "f8", "f2"):
            await pilot.press(opening)
            await wait_until(pilot, lambda: app.screen is not app.chat)
            await pilot.press(
                "pagedown", "pagedown", "pageup", "down", "end", "home", "up", "pageup", "a", "b"
            )
            await pilot.press("escape")
            await wait_until(pilot, lambda: app.screen is app.chat)


async def test_the_palette_says_where_a_window_is_too_small_and_leaves_one_that_becomes_so(
    tmp_path: Path,
) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT])), (80, 4)) as (app, pilot):
        await pilot.press("ctrl+p", "pagedown")
        assert app.screen is app.chat
        await pilot.resize_terminal(80, 24)
        await wait_until(pilot, lambda: "window is too small" in screen_text(app))
        await pilot.press("ctrl+p")
        await wait_until(pilot, lambda: isinstance(app.screen, Palette))
        await pilot.resize_terminal(6, 10)
        await pilot.press("a", "b", "c")
        await wait_until(pilot, lambda: app.screen is app.chat)


async def test_the_palette_takes_page_keys_while_its_list_has_no_row(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT]))) as (app, pilot):
        await pilot.press("ctrl+p")
        await wait_until(pilot, lambda: isinstance(app.screen, Palette))
        commands = app.screen.query_one(CommandList)
        commands.styles.max_height = 1
        commands.styles.border = ("solid", "white")
        await wait_until(pilot, lambda: commands.option_count > 3)
        await pilot.press("down")
        commands._clear_caches()
        assert not commands.scrollable_content_region
        await pilot.press("pagedown", "pageup", "end", "home")
        assert isinstance(app.screen, Palette)
