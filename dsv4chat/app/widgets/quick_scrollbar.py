"""A vertical scrollbar that costs little, as it moves with every line of an answer.

Textual's own is a Rich renderable, printed on a console in memory each time: 4 ms, twice a line.
"""

from typing import Self

from rich.segment import Segment
from textual.geometry import Region
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip


class QuickScrollBar(ScrollBar):
    """Looks and works as Textual's.

    with_layout: what changes now is drawn with the layout that is going on, not in a frame of its own.
    """

    with_layout = False

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> Self:
        if self.with_layout and not (layout or recompose):
            self.screen._compositor._dirty_regions.add(self.region)
            return self
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def render_lines(self, crop: Region) -> list[Strip]:
        width, height = self.size
        bar = self.render() if self.is_attached else None
        if not isinstance(bar, ScrollBarRender) or isinstance(bar.style, str):
            return [Strip.blank(crop.width)] * crop.height
        back, colour = bar.style.bgcolor, bar.style.color
        if back is None or colour is None:
            return super().render_lines(crop)
        drawn = bar.render_bar(
            size=height,
            virtual_size=bar.virtual_size,
            window_size=bar.window_size,
            position=bar.position,
            thickness=width,
            back_color=back,
            bar_color=colour,
        ).segments
        segments = Segment.apply_style(drawn[crop.y : crop.bottom], self.visual_style.rich_style)
        strips = [Strip([segment], width) for segment in segments]
        _, background = self.background_colors
        for line_filter in self.get_line_filters():
            strips = [strip.apply_filter(line_filter, background) for strip in strips]
        return strips if crop.width == width else [strip.crop(crop.x, crop.right) for strip in strips]
