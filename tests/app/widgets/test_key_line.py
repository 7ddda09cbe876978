"""The row of keys: which are shown, which a click presses."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from dsv4chat.app.widgets.key_line import KeyLine
from tests.support.host import drawn, hosted_screen


class Keys(Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f2,x", "first", "First", tooltip="The first of all"),
        Binding("f4", "hidden", "Hidden", show=False),
        Binding("f5", "off", "Off"),
        Binding("f6", "never", "Never"),
        Binding("f7", "last", "Last", key_display="Ende"),
        Binding("f8", "stop", "Stop"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []
        self.off = True
        self.writing = False

    def compose(self) -> ComposeResult:
        yield KeyLine(first="stop")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "off":
            return None if self.off else True
        return action != "never" and (action != "stop" or self.writing)

    def action_first(self) -> None:
        self.done.append("first")

    def action_last(self) -> None:
        self.done.append("last")

    def action_off(self) -> None:
        self.done.append("off")


async def test_it_shows_what_can_be_pressed_now_and_a_click_presses_it() -> None:
    async with hosted_screen(Keys, (60, 5)) as (host, pilot, _):
        screen = host.screen
        assert isinstance(screen, Keys)
        await pilot.pause()
        row = drawn(host).split("\n")[-1]
        assert row == "  f2 First f5 Off Ende Last"
        for words in ("First", "f5", "Ende"):
            await pilot.click(KeyLine, offset=(row.index(words), 0))
        assert screen.done == ["first", "last"]
        screen.off = False
        screen.refresh_bindings()
        await pilot.pause()
        await pilot.click(KeyLine, offset=(row.index("f5"), 0))
        for between in (0, 1, row.index(" f5"), len(row) + 3):
            await pilot.click(KeyLine, offset=(between, 0))
        assert screen.done == ["first", "last", "off"]


async def test_the_mouse_over_a_key_tells_what_it_is_for() -> None:
    async with hosted_screen(Keys, (60, 5)) as (host, pilot, _):
        line = host.screen.query_one(KeyLine)
        await pilot.pause()
        await pilot.hover(KeyLine, offset=(4, 0))
        assert (line.hovered, line.tooltip) == (0, "The first of all")
        await pilot.hover(KeyLine, offset=(14, 0))
        assert (line.hovered, line.tooltip) == (1, None)
        await pilot.hover(KeyLine, offset=(50, 0))
        assert line.hovered is None


async def test_what_stops_an_answer_comes_first() -> None:
    async with hosted_screen(Keys, (12, 5)) as (host, pilot, _):
        screen = host.screen
        assert isinstance(screen, Keys)
        screen.writing = True
        screen.refresh_bindings()
        await pilot.pause()
        assert drawn(host).split("\n")[-1] == "  f8 Stop"


async def test_keys_that_do_not_fit_are_left_out() -> None:
    async with hosted_screen(Keys, (19, 5)) as (host, pilot, _):
        await pilot.pause()
        assert drawn(host).split("\n")[-1] == "  f2 First f5 Off"
        await pilot.resize_terminal(18, 5)
        await pilot.pause()
        assert drawn(host).split("\n")[-1] == "  f2 First"
