"""How fast tokens come: the last one, the last few hundred, and how the turn began."""

from typing import ClassVar

from textual.content import Content
from textual.widget import Widget

from dsv4chat.app.drawing import sparkline
from dsv4chat.app.live_figures import LatencyFigures
from dsv4chat.app.styles import beside
from dsv4chat.app.wording import milliseconds, rate

_WIDTH = 35


class LatencyPanel(Widget):
    """Draws `figures` when told to; its size never changes."""

    DEFAULT_CSS = beside(__file__)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "latency-panel--value",
        "latency-panel--label",
        "latency-panel--spark",
        "latency-panel--strong",
    }

    def __init__(self, figures: LatencyFigures, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = "Latency"
        self.figures = figures

    def render(self) -> Content:
        figures = self.figures
        percentiles = figures.percentiles()
        speed = figures.tokens_per_second
        last = figures.last
        rows = [
            self._row(
                (milliseconds(last) if last is not None else "–", "strong"),
                (" last token", "label"),
                right=(rate(speed) if speed else "", "strong"),
            ),
            Content(sparkline(figures.window, _WIDTH)).stylize(self.get_visual_style("latency-panel--spark")),
        ]
        if percentiles is None:
            rows.append(self._row(("no tokens yet", "label")))
        else:
            p50, p95, most = (milliseconds(value).removesuffix(" ms") for value in percentiles)
            rows.append(
                self._row(
                    ("p50 ", "label"),
                    (p50, "value"),
                    ("  p95 ", "label"),
                    (p95, "value"),
                    ("  max ", "label"),
                    (most, "value"),
                )
            )
        rows += self._beginning()
        return Content("\n").join(rows)

    def _beginning(self) -> list[Content]:
        figures = self.figures
        if figures.first_token is not None:
            first = milliseconds(figures.first_token)
            parts = f"{milliseconds(figures.prefill or 0)} + {milliseconds(figures.first_decode or 0)}"
            parts = parts.replace(" ms +", " +")
        else:
            first = parts = "–"
        if figures.prompt is None:
            reuse = "–"
        elif figures.reused is None:
            reuse = f"– of {figures.prompt:,}"
        else:
            reuse = f"{figures.reused:,} of {figures.prompt:,}"
        return [
            self._row(("first token", "label"), right=(first, "value")),
            self._row(("  prefill, decode ", "label"), right=(parts, "value")),
            self._row(("prompt reused", "label"), right=(reuse, "value")),
        ]

    def _row(self, *parts: tuple[str, str], right: tuple[str, str] = ("", "label")) -> Content:
        gap = _WIDTH - sum(len(text) for text, _ in (*parts, right))
        return Content.assemble(
            *((text, self.get_visual_style(f"latency-panel--{name}")) for text, name in parts),
            " " * max(0, gap),
            (right[0], self.get_visual_style(f"latency-panel--{right[1]}")),
        )
