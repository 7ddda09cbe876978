"""Text that is drawn line by line: of however many lines a widget has, only those in sight cost anything.

Textual's own way turns the whole content of a widget into what a terminal shows whenever any of it changes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.content import Content
from textual.geometry import Region, Size
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    _Base = Widget
else:
    _Base = object  # of several widget bases Textual takes styles from the first only: be none of them


class DrawnLines(_Base):
    """Mix into a widget class without a border. `lines` gives its lines for a width."""

    _strips: dict[int, Strip] | None = None
    _strips_of: tuple[object, ...] = ()

    def lines(self, width: int) -> Sequence[Content]:
        """The lines, none wider than `width` cells."""
        raise NotImplementedError

    def lines_changed(self, first: int = 0) -> None:
        """Draw the lines from number `first` on again when they are next in sight."""
        if self._strips is not None:
            self._strips = {y: strip for y, strip in self._strips.items() if y < first} if first else None

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.lines(max(1, width)))

    def render_lines(self, crop: Region) -> list[Strip]:
        width = self.outer_size.width
        if not self.is_attached:  # removed since the frame was laid out; what needs the screen would raise
            return [Strip.blank(crop.width)] * crop.height
        gutter = self.gutter
        inner = width - gutter.width
        style = self.visual_style
        blank = Strip.blank(width, style.rich_style)
        if inner <= 0:
            return [blank.crop(crop.x, crop.right)] * crop.height
        lines = self.lines(inner)
        key = (width, style, self.text_selection)
        if self._strips is None or self._strips_of != key:
            self._strips, self._strips_of = {}, key
        rows = []
        for y in range(crop.y, crop.bottom):
            number = y - gutter.top
            if not 0 <= number < len(lines):
                rows.append(blank)
                continue
            strip = self._strips.get(number)
            if strip is None:
                strip = self._strips[number] = self._strip(lines[number], number, inner)
            rows.append(strip)
        if crop.x == 0 and crop.width == width:
            return rows
        return [row.crop(crop.x, crop.right) for row in rows]

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        lines = self.lines(max(1, self.outer_size.width - self.gutter.width))
        return selection.extract("\n".join(line.plain for line in lines)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def notify_style_update(self) -> None:
        self._strips = None
        super().notify_style_update()

    def _strip(self, line: Content, number: int, width: int) -> Strip:
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(number)) is not None:
            start, end = span
            line = line.stylize(
                self.screen.get_visual_style("screen--selection"), start, len(line) if end == -1 else end
            )
        style = self.visual_style
        segments = [Segment(text, part.rich_style) for text, part in line.render(style, "", self._get_style)]
        strip = Strip(segments).adjust_cell_length(width, style.rich_style).apply_offsets(0, number)
        gutter = self.gutter
        if not gutter.width:
            return strip
        left, right = (Strip.blank(cells, style.rich_style) for cells in (gutter.left, gutter.right))
        return Strip.join([left, strip, right])
