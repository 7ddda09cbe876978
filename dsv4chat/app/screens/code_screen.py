"""Which code block to copy."""

from collections.abc import Sequence

from textual.content import Content

from dsv4chat.app.code_blocks import CodeBlock
from dsv4chat.app.screens.menu import Menu
from dsv4chat.app.wording import plural
from dsv4chat.visible import visible

_SHOWN = 44  # characters of the first line


class CodeScreen(Menu[str]):
    """Gives back the text of a block; None when nothing was chosen. The last block is marked first."""

    def __init__(self, blocks: Sequence[CodeBlock]) -> None:
        choices = [(_line(block), block.text) for block in blocks]
        super().__init__("Code blocks", choices, len(blocks) - 1, "Enter copies · Esc goes back")


def _line(block: CodeBlock) -> Content:
    lines = block.text.splitlines() or [""]
    first = next((line.strip() for line in lines if line.strip()), "")
    about = f"  {visible(block.language)} {plural(len(lines), 'line')}".replace("  ", " ")
    return Content.assemble(
        Content(visible(first)).truncate(_SHOWN, ellipsis=True, pad=True), (about, "$foreground 55%")
    )
