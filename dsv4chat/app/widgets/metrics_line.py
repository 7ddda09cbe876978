"""The panels' most important numbers in one line, for windows too narrow for panels."""

from typing import ClassVar

from textual.content import Content
from textual.widget import Widget

from dsv4chat.app.drawing import sparkline
from dsv4chat.app.live_figures import LatencyFigures, ResidualFigures
from dsv4chat.app.styles import beside
from dsv4chat.app.wording import milliseconds, rate


class MetricsLine(Widget):
    """Draws the figures when told to, as many as fit."""

    DEFAULT_CSS = beside(__file__)
    COMPONENT_CLASSES: ClassVar[set[str]] = {"metrics-line--spark", "metrics-line--text"}

    def __init__(self, latency: LatencyFigures, residual: ResidualFigures, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.latency = latency
        self.residual = residual

    def render(self) -> Content:
        latency, room = self.latency, self.content_size.width
        text = self.get_visual_style("metrics-line--text")
        if latency.last is None:
            return Content("no tokens yet").stylize(text)
        parts = [milliseconds(latency.last)]
        if latency.tokens_per_second:
            parts.append(rate(latency.tokens_per_second))
        if latency.first_token is not None:
            parts.append(f"first {milliseconds(latency.first_token)}")
        if latency.reused is not None and latency.prompt:
            parts.append(f"reused {latency.reused:,} of {latency.prompt:,}")
        if self.residual.last:
            parts.append(f"|X| {max(self.residual.last):.4g}")
        while len(parts) > 1 and len("  ".join(parts)) > room:
            parts.pop()
        line = "  ".join(parts)
        left = min(40, room - len(line) - 2)
        if left < 8:
            return Content(line).stylize(text)
        spark = (sparkline(latency.window, left), self.get_visual_style("metrics-line--spark"))
        return Content.assemble(spark, "  ", (line, text))
