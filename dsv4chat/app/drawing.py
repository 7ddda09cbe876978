"""Small pictures in characters: pure functions from numbers to rows of cells.

A cell is (character, style name); `styled` gives the cells their styles, given one for each name. Heights and
widths are in cells; values are drawn on a logarithmic scale unless said otherwise.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise

from textual.style import Style

from dsv4chat.app.picture import Row

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_BRAILLE_LEFT = (0x40, 0x04, 0x02, 0x01)  # dots of the left column from the bottom up
_BRAILLE_RIGHT = (0x80, 0x20, 0x10, 0x08)
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

Cell = tuple[str, str]


def styled(rows: Sequence[Sequence[Cell]], styles: Mapping[str, Style]) -> list[Row]:
    """Rows of cells as rows of a `Picture`; a name without a style is drawn plainly."""
    plain = Style()
    return [
        [
            ("".join(character for character, _ in cells), styles.get(name, plain))
            for name, cells in groupby(row, key=lambda cell: cell[1])
        ]
        for row in rows
    ]


def sparkline(values: Sequence[float], width: int) -> str:
    """The last values, one a column, newest at the right, on a linear scale from 0 to the largest."""
    shown = list(values)[-width:]
    top = max(shown, default=0.0)
    if top <= 0:
        return " " * width
    marks = "".join(_EIGHTHS[1 + min(7, int(7.999 * value / top))] for value in shown)
    return marks.rjust(width)


def decades(low: float, high: float) -> tuple[int, int]:
    """The powers of ten around two positive values, at least one apart: (floor, ceiling)."""
    first = math.floor(math.log10(max(low, 1e-30)))
    last = math.ceil(math.log10(max(high, 1e-30)))
    return first, max(last, first + 1)


def power_of_ten(exponent: int) -> str:
    """ "10³"."""
    return "10" + str(exponent).translate(_SUPERSCRIPTS)


def share(value: float, first: int, last: int) -> float:
    """Where a value stands between two powers of ten, 0 to 1."""
    if value <= 0:
        return 0.0
    return min(1.0, max(0.0, (math.log10(value) - first) / (last - first)))


def column_chart(
    values: Sequence[float], envelope: Sequence[float], width: int, height: int, scale: tuple[int, int]
) -> list[list[Cell]]:
    """One column for each value ("bar"), the upper envelope behind it ("envelope"); rows from the top.

    Up to `width` values get whole cells (several each if there is room), up to twice as many half cells of
    braille dots; of more, neighbours share a column and the largest is drawn.
    """
    if not values:
        return [[(" ", "")] * width for _ in range(height)]
    heights = [share(value, *scale) for value in values]
    tops = [share(value, *scale) for value in envelope]
    if len(values) > 2 * width:
        heights, tops = _pool(heights, 2 * width), _pool(tops, 2 * width)
    if len(heights) > width:
        return _braille_columns(heights, tops, width, height)
    return _block_columns(heights, tops, width, height)


def column_width(count: int, width: int) -> int:
    """Cells a column of `column_chart` takes; 0 stands for half a cell."""
    return width // count if 0 < count <= width else 0


def heat_strip(
    rows: Sequence[Sequence[float]], width: int, height: int, scale: tuple[int, int], shades: int
) -> list[list[Cell]]:
    """Layers x tokens: newest token at the right, first layer at the bottom; two layers a cell ("▀").

    A style name is "heat-UPPER-LOWER" with shades 0 (scale's foot) to shades - 1, or "" where no token is.
    Where there are more layers than half cells, neighbours share one and the largest is drawn.
    """
    shown = [_pool(row, 2 * height) for row in list(rows)[-width:]]
    first, last = scale
    # The values from which on each shade but the first is due; finding one among them needs no logarithm.
    steps = [10 ** (first + (last - first) * shade / shades) for shade in range(1, shades)]
    picture: list[list[Cell]] = []
    for line in range(height):
        cells: list[Cell] = [(" ", "")] * (width - len(shown))
        for column in shown:
            upper, lower = _half_cells(column, line, height)
            cells.append(("▀", f"heat-{bisect_right(steps, upper)}-{bisect_right(steps, lower)}"))
        picture.append(cells)
    return picture


def _half_cells(column: Sequence[float], line: int, height: int) -> tuple[float, float]:
    """The values of the two half cells of a line; layers fill the height evenly, the first at the bottom."""
    count = len(column)
    return (
        column[(2 * height - 1 - 2 * line) * count // (2 * height)],
        column[(2 * height - 2 - 2 * line) * count // (2 * height)],
    )


def _pool(values: Sequence[float], count: int) -> list[float]:
    if len(values) <= count:
        return list(values)
    bounds = [index * len(values) // count for index in range(count + 1)]
    return [max(values[start:end]) for start, end in pairwise(bounds)]


def _block_columns(
    heights: Sequence[float], tops: Sequence[float], width: int, height: int
) -> list[list[Cell]]:
    each = width // len(heights)
    gap = 1 if each >= 3 else 0
    picture: list[list[Cell]] = []
    for line in range(height - 1, -1, -1):
        row: list[Cell] = []
        for value, top in zip(heights, tops, strict=True):
            filled = min(8, max(0, round(8 * (value * height - line))))
            reach = min(8, max(0, round(8 * (top * height - line))))
            if line == 0:
                filled = max(filled, 1)  # a value at the foot of the scale is still there
            if filled == 8:
                cell = ("█", "bar")
            elif filled and reach == 8:
                cell = (_EIGHTHS[filled], "bar-in-envelope")
            elif filled:
                cell = (_EIGHTHS[filled], "bar")
            else:
                cell = (_EIGHTHS[reach], "envelope")
            row += [cell] * (each - gap) + [(" ", "")] * gap
        picture.append(row + [(" ", "")] * (width - len(row)))
    return picture


def _braille_columns(
    heights: Sequence[float], tops: Sequence[float], width: int, height: int
) -> list[list[Cell]]:
    levels = 4 * height
    dots = [max(1, round(value * levels)) for value in heights]
    marks = [max(0, round(top * levels) - 1) for top in tops]
    picture: list[list[Cell]] = []
    for line in range(height - 1, -1, -1):
        row: list[Cell] = []
        for cell in range(width):
            code, filled = 0, False
            for column, table in ((2 * cell, _BRAILLE_LEFT), (2 * cell + 1, _BRAILLE_RIGHT)):
                if column >= len(dots):
                    continue
                for dot in range(4):
                    level = 4 * line + dot
                    if level < dots[column]:
                        code |= table[dot]
                        filled = True
                    elif level == marks[column]:
                        code |= table[dot]
            row.append((chr(0x2800 + code) if code else " ", "bar" if filled else "envelope"))
        picture.append(row)
    return picture
