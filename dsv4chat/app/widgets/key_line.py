"""The keys that do something now, in one row; a click presses one.

Textual's `Footer` is a widget for each key, all of them mounted anew at each change: 45 ms at the beginning
and the end of every answer, in which no other key is looked at.
"""

from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

from rich.cells import cell_len
from textual.content import Content
from textual.events import Leave, MouseDown, MouseMove
from textual.geometry import Offset
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget

from dsv4chat.app.styles import beside


@dataclass(frozen=True, slots=True)
class _Item:
    key: str
    shown: str
    words: str
    enabled: bool
    tooltip: str

    @property
    def width(self) -> int:
        return cell_len(f"{self.shown} {self.words}")


class KeyLine(Widget):
    """Keys that do not fit are left out, that of the action `first` last.

    hovered: the number of the item under the mouse.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = beside(__file__)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "key-line--key",
        "key-line--description",
        "key-line--hover",
        "key-line--disabled",
    }
    hovered: reactive[int | None] = reactive(None)

    def __init__(self, first: str = "") -> None:
        super().__init__()
        self._first = first
        self._items: list[_Item] = []

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def render(self) -> Content:
        key, words, hover, disabled = (
            self.get_visual_style(f"key-line--{name}", partial=True)
            for name in ("key", "description", "hover", "disabled")
        )
        parts: list[Content] = []
        for number, item in enumerate(self._fitting()):
            part = Content.assemble((item.shown, key), (f" {item.words}", words))
            if number == self.hovered:
                part = part.stylize(hover)
            parts.append(part if item.enabled else part.stylize(disabled))
        return Content(" ").join(parts)

    def on_mouse_down(self, event: MouseDown) -> None:
        number = self._at(event.get_content_offset(self))
        if number is None:
            return
        if self._items[number].enabled:
            self.app.simulate_key(self._items[number].key)
        else:
            self.app.bell()

    def on_mouse_move(self, event: MouseMove) -> None:
        self.hovered = self._at(event.get_content_offset(self))

    def on_leave(self, event: Leave) -> None:
        self.hovered = None

    def watch_hovered(self, hovered: int | None) -> None:
        self.tooltip = None if hovered is None else self._items[hovered].tooltip or None

    def _changed(self, screen: Screen[object]) -> None:
        if not self.is_attached or screen is not self.screen:
            return
        found: dict[str, _Item] = {}
        for _, binding, enabled, tooltip in screen.active_bindings.values():
            if binding.show and binding.action not in found:
                shown = self.app.get_key_display(binding)
                found[binding.action] = _Item(binding.key, shown, binding.description, enabled, tooltip)
        items = [found[action] for action in sorted(found, key=lambda action: action != self._first)]
        if items != self._items:
            self._items, self.hovered = items, None
            self.refresh()

    def _fitting(self) -> list[_Item]:
        ends = accumulate(item.width + 1 for item in self._items)
        room = self.content_size.width + 1
        return [item for item, end in zip(self._items, ends, strict=True) if end <= room]

    def _at(self, place: Offset | None) -> int | None:
        """The number of the item at a place in the row."""
        if place is None:
            return None
        start = 0
        for number, item in enumerate(self._fitting()):
            if start <= place.x < start + item.width:
                return number
            start += item.width + 1
        return None
