"""Widgets that take the size a layout gave them as settled.

Textual lays the whole screen out a second time when a widget is told a new size, in case it gets scrollbars
by that. A text that grows line by line would pay for two layouts a line.
"""

from typing import TYPE_CHECKING

from textual.geometry import Size
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
