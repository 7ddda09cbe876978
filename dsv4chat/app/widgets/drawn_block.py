"""A Markdown block that is drawn in one piece instead of being made of a widget for each part.

Mounting and laying out hundreds of widgets for a long list or table would hold up the whole screen.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.content import Content
from textual.geometry import Size
from textual.widgets._markdown import MarkdownBlock

if TYPE_CHECKING:
    _Block = MarkdownBlock
else:
    _Block = object  # of several widget bases Textual takes styles from the first only: be none of them


class DrawnBlock(_Block):
    """Mix into a block class; `draw` gives the lines for a width, or is None: then the block is as ever."""

    draw: Callable[[int], list[Content]] | None = None
    _drawn: tuple[int, list[Content]] | None = None

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        if self.draw is None:
            return super().get_content_height(container, viewport, width)
        return len(self._lines(self.draw, width))

    def render(self) -> Content:
        if self.draw is None:
            return self._content
        return Content("\n").join(self._lines(self.draw, self.content_size.width))

    def _lines(self, draw: Callable[[int], list[Content]], width: int) -> list[Content]:
        if self._drawn is None or self._drawn[0] != width:
            self._drawn = (width, draw(width))
        return self._drawn[1]
