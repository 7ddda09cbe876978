"""All tools, and whether each may run unasked."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from dsv4chat.app.screens.over_chat import OverChat
from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.choice_list import ChoiceList
from dsv4chat.visible import visible

_NEXT: dict[str | None, str | None] = {None: "always", "always": "never", "never": None}
_WORDS = {None: "asks before it runs", "always": "always runs", "never": "never runs"}
_NAME = 20  # cells


class ApprovalsScreen(OverChat[None]):
    """Enter goes from asking to always to never; keep(tool, decision) is called each time."""

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "leave", "Leave", show=False, priority=True)
    ]

    def __init__(
        self,
        tools: Sequence[Mapping[str, Any]],
        decisions: Mapping[str, str],
        keep: Callable[[str, str | None], None],
    ) -> None:
        super().__init__()
        self._tools = list(tools)
        self._decisions: dict[str, str | None] = dict(decisions)
        self._keep = keep

    def compose(self) -> ComposeResult:
        with Vertical(id="box") as box:
            box.border_title = "Tools"
            yield ChoiceList(*(Option(self._line(tool)) for tool in self._tools), compact=True, markup=False)
            yield Static("", markup=False, id="words")
            yield Static("Enter changes · Esc goes back", markup=False, classes="hint")

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.highlighted = 0
        options.focus()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        words = visible(str(self._tools[event.option_index].get("description", "")))
        self.query_one("#words", Static).update(Content(words))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        tool = self._tools[event.option_index]
        name = str(tool["name"])
        decision = self._decisions[name] = _NEXT[self._decisions.get(name)]
        self._keep(name, decision)
        self.query_one(OptionList).replace_option_prompt_at_index(event.option_index, self._line(tool))

    def _line(self, tool: Mapping[str, Any]) -> Content:
        name = str(tool["name"])
        words = _WORDS[self._decisions.get(name)]
        return Content.assemble(
            Content(name).truncate(_NAME, ellipsis=True, pad=True), "  ", (words, "$foreground 70%")
        )

    def action_leave(self) -> None:
        self.dismiss(None)
