"""One token: how probable it was, what else could have been, how long it took, |X| after each layer."""

from collections.abc import Sequence
from typing import ClassVar

from textual.style import Style
from textual.widget import Widget

from dsv4chat.app.drawing import column_chart, decades, power_of_ten, styled
from dsv4chat.app.picture import Picture, Row
from dsv4chat.app.styles import beside
from dsv4chat.app.token_cells import TokenCell
from dsv4chat.app.wording import milliseconds
from dsv4chat.visible import visible

_LABEL = 4
_BAR = 8
_LEAST_CHART = 2  # rows
_MOST_CHART = 8


class TokenPanel(Widget):
    """Draws `cells[number]` in whatever room there is; the envelope is the largest |X| of all `cells`."""

    DEFAULT_CSS = beside(__file__)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "token-panel--value",
        "token-panel--label",
        "token-panel--bar",
        "token-panel--envelope",
    }

    def __init__(self, cells: Sequence[TokenCell]) -> None:
        super().__init__()
        self.border_title = "Token"
        self.cells: Sequence[TokenCell] = cells
        self.number = 0
        self._envelope: list[float] = []
        self._lowest = 0.0

    def show(self, cells: Sequence[TokenCell], number: int) -> None:
        """Draw another token."""
        if len(cells) != len(self.cells) or not self._envelope:
            profiles = [cell.residual for cell in cells if cell.residual]
            self._envelope = [max(values) for values in zip(*profiles, strict=False)]
            self._lowest = min((min(profile) for profile in profiles), default=0.0)
        self.cells, self.number = cells, number
        self.refresh()

    def render(self) -> Picture:
        if not self.cells:
            return Picture([self._row(("no tokens yet", "label"))])
        cell = self.cells[self.number]
        width, room = self.content_size.width, self.content_size.height
        rows: list[Row] = [
            self._row((repr(visible(cell.text))[1:-1] or "(part of a character)", "value")),
            self._row(
                (f"{self.number + 1:,} of {len(self.cells):,}", "label"),
                (f"  {cell.kind}", "label"),
                (f"  id {cell.id}", "label"),
            ),
            self._row(
                (percent(cell.probability), "value"),
                (f"  log {cell.logprob:.2f}  ", "label"),
                (milliseconds(cell.milliseconds), "value"),
            ),
        ]
        chart = self._chart(cell, width, room - len(rows) - min(3, len(cell.alternatives)))
        left = room - len(rows) - len(chart)
        rows += self._alternatives(cell, left)
        if chart:
            rows += [[]] * max(0, room - len(rows) - len(chart)) + chart
        return Picture(rows)

    def _alternatives(self, cell: TokenCell, room: int) -> list[Row]:
        if not cell.alternatives or room < 1:
            return []
        rows: list[Row] = []
        for one in cell.alternatives[:room]:
            share = TokenCell(one.id, one.text, "", False, one.logprob, 0.0).probability
            mark = "▸" if one.id == cell.id else " "
            bar = "█" * round(_BAR * share)
            rows.append(
                self._row(
                    (f"{mark}{percent(share):>8} ", "value" if one.id == cell.id else "label"),
                    (f"{bar:{_BAR}} ", "bar"),
                    (repr(visible(one.text))[1:-1] or f"id {one.id}", "value"),
                )
            )
        return rows

    def _chart(self, cell: TokenCell, width: int, room: int) -> list[Row]:
        """|X| of the token over the largest of the answer; nothing where there is no room or no figure."""
        height = min(_MOST_CHART, room - 1)  # a line above it says the largest
        if not cell.residual or height < _LEAST_CHART or len(self._envelope) != len(cell.residual):
            return []
        scale = decades(self._lowest, max(self._envelope))
        picture = column_chart(cell.residual, self._envelope, width - _LABEL, height, scale)
        labels = {0: power_of_ten(scale[1]), height - 1: power_of_ten(scale[0])}
        cells = [
            [(f"{labels.get(number, ''):>{_LABEL - 1}} ", "label"), *row]
            for number, row in enumerate(picture)
        ]
        styles = {name: self._style(name) for name in ("bar", "envelope", "label")}
        styles["bar-in-envelope"] = styles["bar"]
        top = max(cell.residual)
        head = self._row(
            ("|X| ", "label"),
            (f"{top:.4g}", "value"),
            (f" at layer {list(cell.residual).index(top) + 1}", "label"),
        )
        return [head, *styled(cells, styles)]

    def _row(self, *parts: tuple[str, str]) -> Row:
        return [(text, self._style(name)) for text, name in parts]

    def _style(self, name: str) -> Style:
        return self.get_visual_style(f"token-panel--{name}")


def percent(share: float) -> str:
    """ "87.3 %", "0.004 %"."""
    value = 100 * share
    if value >= 0.1:
        return f"{value:.1f} %"
    return f"{value:.2g} %"
