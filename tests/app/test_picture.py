"""Rows of styled text, drawn as they are."""

import pytest
from textual.app import RenderResult
from textual.color import Color
from textual.style import Style
from textual.widget import Widget

from dsv4chat.app.picture import Picture, Row
from tests.support.host import drawn, hosted

RED = Style(foreground=Color(255, 0, 0))


class Shown(Widget):
    DEFAULT_CSS = "Shown { width: 8; height: 3; background: rgb(0,0,9); color: rgb(0,255,0); }"

    def __init__(self, rows: list[Row]) -> None:
        super().__init__()
        self.rows = rows

    def render(self) -> RenderResult:
        return Picture(self.rows)


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        ([], ""),
        ([[("plain", Style())], [], [("re", RED), ("d", Style())]], "plain\n\nred"),
        ([[("more than fits", RED)]] * 5, "more tha\nmore tha\nmore tha"),
        ([[("seven 7", RED), ("漢", RED)]], "seven 7"),  # half of a wide character is not shown
        ([[("[b]x[/]", RED)]], "[b]x[/]"),
    ],
)
async def test_rows_are_drawn_as_far_as_they_fit(rows: list[Row], shown: str) -> None:
    async with hosted(lambda: Shown(rows)) as (host, _):
        assert drawn(host) == shown


async def test_a_style_is_laid_over_that_of_the_widget() -> None:
    async with hosted(lambda: Shown([[("a", RED), ("b", Style())]])) as (host, _):
        first, second, *_ = host.screen._compositor.render_strips()[0]
        assert (first.text, str(first.style)) == ("a", "#ff0000 on #000009")
        assert str(second.style) == "#00ff00 on #000009"


async def test_its_size_is_that_of_its_rows() -> None:
    picture = Picture([[("ab", RED), ("漢", RED)], []])
    assert picture.get_optimal_width({}, 80) == 4
    assert picture.get_height({}, 80) == 2
