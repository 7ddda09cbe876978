"""A list of options for windows of any height."""

from textual._widget_navigation import Direction
from textual.widgets import OptionList


class ChoiceList(OptionList):
    """Textual's own, without a row on the screen, knows no line of its options: Page up and down fail."""

    def _move_page(self, direction: Direction) -> None:
        if self.scrollable_content_region:
            super()._move_page(direction)
