"""Rows of styled text as they are, at little cost: what a panel draws some times a second.

Textual's `Content` would be wrapped, aligned and cut into spans first.
"""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from textual.css.styles import RulesMap
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual

Row = Sequence[tuple[str, Style]]


class Picture(Visual):
    """Rows of (text, style); what does not fit is cut off."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows

    def render_strips(
        self, width: int, height: int | None, style: Style, options: RenderOptions
    ) -> list[Strip]:
        rich = style.rich_style
        return [
            Strip([Segment(text, (style + part).rich_style) for text, part in row]).adjust_cell_length(
                width, rich
            )
            for row in self.rows[:height]
        ]

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        return max((sum(cell_len(text) for text, _ in row) for row in self.rows), default=0)

    def get_height(self, rules: RulesMap, width: int) -> int:
        return len(self.rows)
