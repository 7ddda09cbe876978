"""The line below the input: mode, context meter, and what is out of the ordinary."""

from typing import ClassVar

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from dsv4chat.app.context_room import NEARLY_FULL
from dsv4chat.app.styles import beside
from dsv4chat.app.wording import short_count, size

_METER = 10  # cells


class StatusLine(Widget):
    """thinking, effort: of the next turn. tools: how many are on offer. used, room: tokens, of the context.

    cached: bytes of the conversation's cache, 0 when that is not known.
    activity: what is being waited for. warning: what is out of the ordinary.
    """

    DEFAULT_CSS = beside(__file__)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "status-line--mode",
        "status-line--quiet",
        "status-line--meter",
        "status-line--warning",
    }

    thinking: reactive[bool] = reactive(True)
    effort: reactive[str | None] = reactive(None)
    tools: reactive[int] = reactive(0)
    used: reactive[int] = reactive(0)
    room: reactive[int] = reactive(0)
    cached: reactive[int] = reactive(0)
    warning: reactive[str] = reactive("")
    activity: reactive[str] = reactive("")

    def render(self) -> Content:
        width = self.content_size.width
        left = [(("● " if self.thinking else "○ ") + "thinking", "mode" if self.thinking else "quiet")]
        if self.thinking:
            left.append((f" {self.effort}" if self.effort else "", "mode"))
        else:
            left.append((" off", "quiet"))
        if self.tools:
            left.append(("  ● tools", "mode"))
        if self.activity:
            left.append((f"  {self.activity}", "mode"))
        if self.warning:
            left.append((f"  {self.warning}", "warning"))
        right: list[tuple[str, str]] = []
        if self.cached and width >= 70:
            right.append((f"cache {size(self.cached)}  ", "quiet"))
        if self.room:
            near = self.used >= NEARLY_FULL * self.room
            filled = min(_METER, round(_METER * self.used / self.room))
            if width >= 60:
                right += [("━" * filled, "meter"), ("─" * (_METER - filled), "quiet"), (" ", "quiet")]
            count = f"{short_count(self.used)} of {short_count(self.room)}"
            right.append((count, "warning" if near else "quiet"))
        gap = width - sum(len(text) for text, _ in left + right)
        if gap < 1:
            right, gap = [], 0
        return Content.assemble(
            *((text, self.get_visual_style(f"status-line--{name}")) for text, name in left),
            " " * gap,
            *((text, self.get_visual_style(f"status-line--{name}")) for text, name in right),
        )
