"""Wording, figures and small pictures: pure functions."""

import pytest

from dsv4chat.app import wording
from dsv4chat.app.drawing import (
    column_chart,
    column_width,
    decades,
    heat_strip,
    power_of_ten,
    share,
    sparkline,
)
from dsv4chat.app.live_figures import LatencyFigures, ResidualFigures
from dsv4chat.app.screens.conversations_screen import when


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.4, "0.40 ms"),
        (12.34, "12.3 ms"),
        (148, "148 ms"),
        (1250, "1.25 s"),
        (12_000, "12 s"),
        (125_000, "2 min 5 s"),
    ],
)
def test_milliseconds(value: float, text: str) -> None:
    assert wording.milliseconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.0 s"),
        (3.24, "3.2 s"),
        (9.96, "10 s"),
        (59.6, "1 min 0 s"),
        (3600, "1 h 0 min"),
        (7380, "2 h 3 min"),
    ],
)
def test_seconds(value: float, text: str) -> None:
    assert wording.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (8.8e6, "8.8 MB"),
        (999.6e6, "1.0 GB"),
        (411e9, "411 GB"),
        (5e15, "5000 TB"),
    ],
)
def test_size(value: float, text: str) -> None:
    assert wording.size(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (8192, "8192"), (12_345, "12.3k"), (256_000, "256k"), (1_048_576, "1.05M")],
)
def test_short_count(value: int, text: str) -> None:
    assert wording.short_count(value) == text


def test_plural_and_rate() -> None:
    assert wording.plural(1, "token") == "1 token"
    assert wording.plural(1234, "token") == "1,234 tokens"
    assert wording.rate(81.44) == "81.4 tok/s"
    assert wording.rate(139.4) == "139 tok/s"


def test_percentiles_are_values_that_were_measured() -> None:
    figures = LatencyFigures()
    assert figures.percentiles() is None
    for value in range(1, 101):
        figures.token(float(value))
    assert figures.percentiles() == (50.0, 95.0, 100.0)
    assert figures.last == 100.0
    figures.begin_turn(10)
    assert figures.tokens_per_second is None
    assert figures.percentiles() == (50.0, 95.0, 100.0)
    figures.token(20.0)
    assert figures.tokens_per_second == pytest.approx(50.0)


def test_the_envelope_is_the_extremes_of_each_layer() -> None:
    figures = ResidualFigures(["window", "csa"])
    for row in ([1.0, 5.0], [3.0, 2.0], []):
        figures.token(row)
    assert (figures.low, figures.high, figures.last) == ([1.0, 2.0], [3.0, 5.0], (3.0, 2.0))
    assert figures.tokens == 2
    assert figures.usual_peak() == (3.0, 5.0)
    figures.token([1.0, 1.0, 1.0])
    assert figures.high == [1.0, 1.0, 1.0]
    figures.reset([])
    assert figures.last is None
    assert figures.usual_peak() is None


def test_sparkline_scales_to_the_largest_of_what_is_shown() -> None:
    assert sparkline([], 4) == "    "
    assert sparkline([1, 8], 4) == "  ▁█"
    assert sparkline([100, 1, 4, 8], 3) == "▁▄█"


@pytest.mark.parametrize(
    ("low", "high", "scale"),
    [(2, 639, (0, 3)), (1, 1, (0, 1)), (0.05, 20, (-2, 2)), (0, 0, (-30, -29)), (100, 100, (2, 3))],
)
def test_decades_hold_the_values(low: float, high: float, scale: tuple[int, int]) -> None:
    assert decades(low, high) == scale


def test_share_and_powers() -> None:
    assert share(10, 0, 2) == pytest.approx(0.5)
    assert (share(0, 0, 2), share(1e9, 0, 2), share(1e-9, 0, 2)) == (0.0, 1.0, 0.0)
    assert power_of_ten(-12) == "10⁻¹²"


@pytest.mark.parametrize("count", [1, 7, 30, 31, 43, 60, 61, 200])
def test_column_charts_fill_exactly_their_box(count: int) -> None:
    values = [10 ** (3 * index / count) for index in range(count)]
    picture = column_chart(values, [value * 2 for value in values], 30, 7, (0, 3))
    assert [len(row) for row in picture] == [30] * 7
    assert {name for row in picture for _, name in row} <= {"bar", "envelope", "bar-in-envelope", ""}
    filled = [sum(1 for row in picture if row[column][1].startswith("bar")) for column in range(30)]
    used = [height for height in filled if height]
    assert used == sorted(used)
    assert count == 1 or max(used) >= 6


def test_every_layer_has_its_column_up_to_two_a_cell() -> None:
    assert (column_width(8, 30), column_width(30, 30), column_width(61, 31)) == (3, 1, 0)
    for peak in range(60):
        values = [1.0] * 60
        values[peak] = 1000.0
        picture = column_chart(values, values, 30, 4, (0, 3))
        top = [index for index, (character, _) in enumerate(picture[0]) if character != " "]
        assert top == [peak // 2]
        left = bool((ord(picture[0][peak // 2][0]) - 0x2800) & 0x47)
        assert left == (peak % 2 == 0)


@pytest.mark.parametrize("layers", [1, 5, 8, 16, 61])
def test_the_heat_strip_puts_the_first_layer_at_the_bottom_and_the_newest_token_right(layers: int) -> None:
    rows = [[10 ** (2 * layer / max(1, layers - 1)) for layer in range(layers)], [1.0] * layers]
    picture = heat_strip(rows, 10, 8, (0, 2), 12)
    assert [len(row) for row in picture] == [10] * 8
    assert all(cell == (" ", "") for row in picture for cell in row[:8])
    assert all(row[9][1] == "heat-0-0" for row in picture)
    shades = [int(shade) for row in reversed(picture) for shade in reversed(row[8][1].split("-")[1:])]
    assert len(shades) == 16
    assert shades == sorted(shades)
    assert shades[0] == 0
    if layers > 1:
        assert shades[-1] == 11


def test_pooled_layers_show_their_largest() -> None:
    values = [1.0] * 200
    values[101] = 1000.0
    picture = column_chart(values, values, 30, 4, (0, 3))
    top = [index for index, (character, _) in enumerate(picture[0]) if character != " "]
    assert top == [101 * 30 // 200]


@pytest.mark.parametrize(
    ("passed", "text"),
    [(5, "now"), (90, "1 min"), (7300, "2 h"), (3 * 86_400, "3 d"), (400 * 86_400, "19")],
)
def test_when(passed: float, text: str) -> None:
    assert when(1_800_000_000 - passed, 1_800_000_000).startswith(text) or text == "19"
