"""The mark of a message that has others beside it, "‹ 2/3 ›", with arrows for the mouse."""

from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.style import Style
from textual.widget import Widget

from dsv4chat.store import Branch

_META = "branch"


class BranchWanted(Message):
    """The person wants to see the branch `step` places further at a message."""

    def __init__(self, message: int, step: int) -> None:
        super().__init__()
        self.message = message
        self.step = step


def branch_mark(branch: Branch | None) -> Content:
    """The mark; empty for a message that stands alone."""
    if branch is None or len(branch.ids) < 2:
        return Content("")
    before, after = branch.index > 0, branch.index + 1 < len(branch.ids)
    return Content.assemble(
        ("‹", _arrow(-1, before)), f" {branch.index + 1}/{len(branch.ids)} ", ("›", _arrow(1, after))
    )


def clicked_arrow(event: Click, message: int, widget: Widget) -> None:
    """Post `BranchWanted` if an arrow was clicked."""
    step = event.style.meta.get(_META)
    if step:
        event.stop()
        widget.post_message(BranchWanted(message, step))


def _arrow(step: int, there: bool) -> Style:
    if not there:
        return Style(dim=True)
    return Style(bold=True) + Style.from_meta({_META: step})
