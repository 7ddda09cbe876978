"""Widgets whose layout is settled by their width, so that a text that grows costs as little as it can.

Textual lays the whole screen out a second time when a widget is told a new size, in case it gets scrollbars
by that; and it arranges all there is in a column anew when the column around it has become higher.
"""

from typing import TYPE_CHECKING

from textual.geometry import Size
from textual.layout import DockArrangeResult
from textual.widget import Widget

if TYPE_CHECKING:
    _Base = Widget
else:
    _Base = object  # of several widget bases Textual takes styles from the first only: be none of them


class SettledSize(_Base):
    """Mix into a widget class that does not scroll, or keeps room for its scrollbar at all times."""

    def _size_updated(
        self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True
    ) -> bool:
        return super()._size_updated(size, virtual_size, container_size, layout=False)


class SettledColumn(SettledSize):
    """Mix into a container whose children all have heights of their own ("auto" or a number)."""

    def arrange(self, size: Size, optimal: bool = False) -> DockArrangeResult:
        return super().arrange(Size(size.width, 0), optimal)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self.arrange(Size(width, 0)).total_region.height if width else 0
