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
        for breakpoints, cells in (
            (self.HORIZONTAL_BREAKPOINTS or (), size.width),
            (self.VERTICAL_BREAKPOINTS or (), size.height),
        ):
            fitting = self._get_breakpoint_classes(cells, list(breakpoints))
            for _, name in breakpoints:
                self.set_class(name in fitting, name)
        self.update_node_styles(animate=False)
        super()._screen_resized(size)
