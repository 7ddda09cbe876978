"""|X|: the largest absolute element of the residual stream after each layer.

Above, one column a layer: the last token in full colour over the largest value so far. Below, where there is
room, the last tokens as a strip: newest at the right, first layer at the bottom, brighter is larger. Both
logarithmic.
"""

from typing import ClassVar

from textual.color import Color
from textual.style import Style
from textual.widget import Widget

from dsv4chat.app.drawing import Cell, column_chart, column_width, decades, heat_strip, power_of_ten, styled
from dsv4chat.app.live_figures import ResidualFigures
from dsv4chat.app.picture import Picture, Row
from dsv4chat.app.styles import beside

_WIDTH = 35  # with the label: one column a layer for 61 layers, two a cell
_LABEL = 4
_SHADES = 12
_KIND_MARKS = {"window": "w", "csa": "c", "hca": "h"}


class ResidualPanel(Widget):
    """Draws `figures` when told to. In fewer than 19 rows it is the columns alone."""

    DEFAULT_CSS = beside(__file__)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "residual-panel--bar",
        "residual-panel--envelope",
        "residual-panel--label",
        "residual-panel--value",
        "residual-panel--cold",
        "residual-panel--hot",
    }
    COLUMN_ROWS = 7
    STRIP_ROWS = 8

    def __init__(self, figures: ResidualFigures, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = "|X| per layer"
        self.figures = figures
        self._heat: dict[str, Style] = {}

    def notify_style_update(self) -> None:
        self._heat.clear()
        super().notify_style_update()

    def render(self) -> Picture:
        figures = self.figures
        last = figures.last
        if last is None:
            return Picture([[("no tokens yet", self._style("label"))]])
        scale = decades(min(figures.low), max(figures.high))
        width = _WIDTH - _LABEL
        room = self.content_size.height - 2
        whole = room >= self.COLUMN_ROWS + self.STRIP_ROWS
        columns = column_chart(last, figures.high, width, self.COLUMN_ROWS if whole else max(1, room), scale)
        rows = [
            *self._labelled(columns, power_of_ten(scale[1]), power_of_ten(scale[0])),
            self._kinds(len(last), width),
        ]
        if whole:
            strip = heat_strip(figures.rows, width, self.STRIP_ROWS, scale, _SHADES)
            rows += self._labelled(strip, f"L{len(last)}", "L1")
        styles = {name: self._style(name) for name in ("bar", "envelope", "label")}
        styles["bar-in-envelope"] = self._style("bar") + Style(background=self._style("envelope").foreground)
        styles |= self._heat_styles()
        return Picture([self._largest(last), *styled(rows, styles)])

    def _largest(self, last: tuple[float, ...]) -> Row:
        """The largest value of the last token, and between which two it usually is, if that fits."""
        top = max(last)
        usual = self.figures.usual_peak() or (top, top)
        left = f" at layer {last.index(top) + 1}"
        right = f"usual {_short(usual[0])} – {_short(usual[1])}"
        gap = _WIDTH - len(_short(top)) - len(left) - len(right)
        return [
            (_short(top), self._style("value")),
            (left, self._style("label")),
            (" " * gap + right if gap > 0 else "", self._style("label")),
        ]

    def _labelled(self, picture: list[list[Cell]], top: str, bottom: str) -> list[list[Cell]]:
        last = len(picture) - 1
        labels = {0: top, last: bottom}
        return [
            [(f"{labels.get(index, ''):>{_LABEL - 1}} "[:_LABEL], "label"), *row]
            for index, row in enumerate(picture)
        ]

    def _kinds(self, layers: int, width: int) -> list[Cell]:
        """The kind of attention of each layer, one letter under its column, if there is room for letters."""
        each = column_width(layers, width)
        kinds = self.figures.kinds
        if not each or len(kinds) != layers:
            words = "one column a layer" if layers <= 2 * width else "the largest of neighbours"
            return [(" " * _LABEL, "label"), (words[:width].ljust(width), "label")]
        cells: list[Cell] = [(" " * _LABEL, "label")]
        for kind in kinds:
            cells.append((_KIND_MARKS.get(kind, "?").ljust(each), "label"))
        return cells

    def _heat_styles(self) -> dict[str, Style]:
        if not self._heat:
            shades = self._shades()
            for upper in range(_SHADES):
                for lower in range(_SHADES):
                    self._heat[f"heat-{upper}-{lower}"] = Style(
                        foreground=shades[upper], background=shades[lower]
                    )
        return self._heat

    def _shades(self) -> list[Color]:
        cold = self._style("cold").foreground or Color(40, 40, 60)
        hot = self._style("hot").foreground or Color(255, 200, 100)
        middle = self._style("bar").foreground or cold.blend(hot, 0.5)
        half = (_SHADES - 1) / 2
        return [
            cold.blend(middle, shade / half) if shade <= half else middle.blend(hot, shade / half - 1)
            for shade in range(_SHADES)
        ]

    def _style(self, name: str) -> Style:
        return self.get_visual_style(f"residual-panel--{name}")


def _short(value: float) -> str:
    """Three figures: "0.12", "3.4", "212", "1.2k"."""
    if value >= 100_000:
        return f"{value:.0e}".replace("e+0", "e").replace("e+", "e")
    if value >= 1000:
        return f"{value / 1000:.1f}k"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"
