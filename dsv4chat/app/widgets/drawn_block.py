"""A Markdown block that is drawn in one piece instead of being made of a widget for each part.

Mounting and laying out hundreds of widgets for a long list or table would hold up the whole screen.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.content import Content
from textual.geometry import Region, Size
from textual.selection import Selection
from textual.strip import Strip
from textual.widgets._markdown import MarkdownBlock

from dsv4chat.app.widgets.drawn_lines import DrawnLines
from dsv4chat.app.widgets.settled_size import SettledSize

if TYPE_CHECKING:
    _Block = MarkdownBlock
else:
    _Block = object  # of several widget bases Textual takes styles from the first only: be none of them


class DrawnBlock(SettledSize, DrawnLines, _Block):
    """Mix into a block class; `draw` gives the lines for a width, or is None: then the block is as ever."""

    draw: Callable[[int], list[Content]] | None = None
    _drawn: tuple[int, list[Content]] | None = None

    def lines(self, width: int) -> Sequence[Content]:
        if self.draw is None:
            return []
        if self._drawn is None or self._drawn[0] != width:
            self._drawn = (width, self.draw(width))
            self.lines_changed()
        return self._drawn[1]

    def draw_again(self) -> None:
        """What `draw` gives has changed, though not how many lines it is."""
        self._drawn = None
        self.lines_changed()
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        if self.draw is None:
            return super(DrawnLines, self).get_content_height(container, viewport, width)
        return super().get_content_height(container, viewport, width)

    def render_lines(self, crop: Region) -> list[Strip]:
        if self.draw is None:
            return super(DrawnLines, self).render_lines(crop)
        return super().render_lines(crop)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        if self.draw is None:
            return super(DrawnLines, self).get_selection(selection)
        return super().get_selection(selection)
