"""A screen that is put together for its size before it is laid out, and at little cost."""

from textual.geometry import Size
from textual.screen import Screen

from dsv4chat.app.quick_compositor import QuickCompositor


class SizedScreen(Screen[None]):
    """Its breakpoints hold before the first layout of a new size, and also under another screen.

    Textual lays it out once with what the old size had on it, for which there may be no room.
    """

    def __init__(self) -> None:
        super().__init__()
        self._compositor = QuickCompositor()

    def _screen_resized(self, size: Size) -> None:
        fitting = {
            *self._get_breakpoint_classes(size.width, self.HORIZONTAL_BREAKPOINTS or []),
            *self._get_breakpoint_classes(size.height, self.VERTICAL_BREAKPOINTS or []),
        }
        known = {
            name for _, name in (*(self.HORIZONTAL_BREAKPOINTS or ()), *(self.VERTICAL_BREAKPOINTS or ()))
        }
        if self.classes & known != fitting:
            first = not self.classes & known
            self.set_class(False, *(known - fitting))
            self.set_class(True, *fitting)
            if not first:  # styles are found soon; to begin with nothing is lost by waiting for them
                self.update_node_styles(animate=False)
        super()._screen_resized(size)
