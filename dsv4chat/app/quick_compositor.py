"""How a screen is put together, at the cost of what is seen instead of what there is.

Textual's compositor arranges every mounted widget, however far above the view it is, and of each line that
changed somewhere it draws every layer, also those that are covered by others. A transcript is mostly out of
sight and ten layers deep.
"""

from itertools import pairwise

from textual._compositor import ChopsUpdate, Compositor, CompositorMap, ReflowResult
from textual.errors import NoWidget
from textual.geometry import Region, Size
from textual.map_geometry import MapGeometry
from textual.strip import Strip
from textual.widget import Widget

_Span = tuple[int, int, int]  # y, x1, x2


class QuickCompositor(Compositor):
    """Draws the same cells as Textual's.

    A widget out of sight has no size until it comes into sight. Asking for the region of one arranges all.
    """

    def __init__(self) -> None:
        super().__init__()
        self._on_screen: CompositorMap = {}  # as it was drawn last; the other maps are renewed in between

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        there = self.widgets
        shown = self.reflow_visible(parent, size)
        return ReflowResult(
            hidden={widget for widget in there - self.widgets if not _displayed(widget)},
            shown=shown,
            resized={
                widget for widget, place in self._on_screen.items() if widget.outer_size != place.region.size
            },
        )

    def reflow_visible(self, parent: Widget, size: Size) -> set[Widget]:
        self._cuts = self._layers = self._layers_visible = self._visible_widgets = None
        self._full_map_invalidated = True
        self.root, self.size = parent, size
        before = self._on_screen
        now, self.widgets = self._arrange_root(parent, size, visible_only=True)
        self._visible_map = self._on_screen = now
        if size.region not in self._dirty_regions:
            changed = (place.clip.intersection(place.region) for _, place in now.items() ^ before.items())
            self._dirty_regions.update(region for region in changed if region)
        return now.keys() - before.keys()

    def find_widget(self, widget: Widget) -> MapGeometry:
        place = self._on_screen.get(widget)
        if place is not None:
            return place
        if not _scrolled_away(widget):
            raise NoWidget("Widget is not in layout")
        return super().find_widget(widget)

    def render_partial_update(self) -> ChopsUpdate | None:
        spans = [
            (y, max(0, start), min(end, self.size.width))
            for y, start, end in self._regions_to_spans(self._dirty_regions)
            if 0 <= y < self.size.height
        ]
        self._dirty_regions.clear()
        if not spans:
            return None
        return ChopsUpdate(self._draw(spans), spans, [cuts[1:] for cuts in self.cuts])

    def _draw(self, spans: list[_Span]) -> list[dict[int, Strip | None]]:
        """The pieces of lines between two cuts that have a part in `spans`, from front to back."""
        cuts = self.cuts
        chops: list[dict[int, Strip | None]] = [dict.fromkeys(line[:-1]) for line in cuts]
        empty: dict[int, set[int]] = {}
        for y, start, end in spans:
            wanted = {cut for cut, stop in pairwise(cuts[y]) if cut < end and stop > start}
            empty.setdefault(y, set()).update(wanted)
        for widget, (region, clip) in self.visible_widgets.items():
            area = region.intersection(clip)
            first, last = area.column_span
            rows = [y for y in area.line_range if y in empty and any(first <= cut < last for cut in empty[y])]
            if not rows:
                continue
            top = rows[0]
            crop = Region(area.x - region.x, top - region.y, area.width, rows[-1] + 1 - top)
            strips = widget.render_lines(crop)
            for y in rows:
                inside = [cut for cut in cuts[y] if first <= cut <= last]
                pieces = strips[y - top].divide([cut - area.x for cut in inside[1:]])
                line, missing = chops[y], empty[y]
                for cut, piece in zip(inside, pieces, strict=False):
                    if cut in missing:
                        line[cut] = piece
                        missing.remove(cut)
                if not missing:
                    del empty[y]
            if not empty:
                break
        return chops


def _displayed(widget: Widget) -> bool:
    return widget.is_attached and all(node.display for node in _lineage(widget))


def _scrolled_away(widget: Widget) -> bool:
    """Whether there is a place for it, but in no part of a container that is seen. Not for one whose layout
    is to change: to arrange it in the middle of its change would keep that."""
    return (
        _displayed(widget)
        and any(node.max_scroll_y > 0 for node in widget.ancestors if isinstance(node, Widget))
        and not any(node._layout_required for node in _lineage(widget))
    )


def _lineage(widget: Widget) -> list[Widget]:
    return [node for node in widget.ancestors_with_self if isinstance(node, Widget)]
