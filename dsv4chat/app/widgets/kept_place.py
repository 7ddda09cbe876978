"""Where somebody reads who scrolled up. What was in sight stays there when messages change their heights."""

from collections.abc import Mapping
from dataclasses import dataclass

from textual.geometry import Region
from textual.widget import Widget


@dataclass(frozen=True)
class KeptPlace:
    """A message and where its edge was, in rows below the upper edge of the view.

    It is the first that begins in sight; without one the message that fills the view.
    """

    message: Widget
    top: int
    height: int

    def moved(self, region: Region, above: int, *, grows_above: bool) -> int:
        """By how many rows to scroll to have it there again.

        region: its place in the list now; above: how many rows of the list are above the view. grows_above:
        what has changed in a message that began above the view changed up there; otherwise its whole text
        did, as with another width.
        """
        top = region.y - above
        if self.top >= 0:
            return top - self.top
        if grows_above:
            return (top + region.height) - (self.top + self.height)
        return top - round(self.top * region.height / self.height)


def place_in(regions: Mapping[Widget, Region], above: int, height: int) -> KeptPlace | None:
    """What is seen now, to be kept; None if no message is.

    regions: of the messages in the list, in its order. `height` rows are seen below the first `above`.
    """
    filling = None
    for message, region in regions.items():
        if above <= region.y < above + height:
            return KeptPlace(message, region.y - above, region.height)
        if region.y < above < region.bottom:
            filling = KeptPlace(message, region.y - above, region.height)
    return filling
