"""Markdown lists of plain items, drawn in one piece with hanging indents, lists inside them too."""

from dataclasses import dataclass

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets._markdown import (
    MarkdownBlock,
    MarkdownBulletList,
    MarkdownList,
    MarkdownListItem,
    MarkdownOrderedList,
    MarkdownParagraph,
)

from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.drawn_block import DrawnBlock

_BULLETS = "•‣⁃"
_LEAST = 10  # cells a text keeps however deep its list is


@dataclass(frozen=True)
class _Line:
    """One paragraph of an item: its bullet ("" for a further paragraph), where it begins, its text."""

    bullet: str
    indent: int
    text: Content


class CompactBulletList(DrawnBlock, MarkdownBulletList):
    """A list with bullets. With code, tables or quotes inside it is made of Textual's widgets."""

    DEFAULT_CSS = beside(__file__)

    def compose(self) -> ComposeResult:
        if not _compose_plainly(self):
            yield from super().compose()


class CompactOrderedList(DrawnBlock, MarkdownOrderedList):
    """A numbered list. With code, tables or quotes inside it is made of Textual's widgets."""

    DEFAULT_CSS = beside(__file__)

    def compose(self) -> ComposeResult:
        if not _compose_plainly(self):
            yield from super().compose()


def _compose_plainly(block: "CompactBulletList | CompactOrderedList") -> bool:
    lines = _plain_lines(block, 0, 0)
    if lines is None:
        return False
    block._blocks.clear()
    block.draw = lambda width: [row for line in lines for row in _rows(line, width)]
    return True


def _plain_lines(block: MarkdownBlock, indent: int, depth: int) -> list[_Line] | None:
    """The paragraphs of a list and of those inside it; None if it holds anything else."""
    lines: list[_Line] = []
    bullets = _bullets(block, depth)
    for item, bullet in zip(block._blocks, bullets, strict=True):
        if not isinstance(item, MarkdownListItem):
            return None
        inner, first = indent + len(bullet), True
        if not item._blocks:
            lines.append(_Line(bullet, indent, Content("")))
        for part in item._blocks:
            if isinstance(part, MarkdownParagraph) and not part._blocks:
                if not first:
                    lines.append(_Line("", inner, Content("")))
                lines.append(_Line(bullet if first else "", indent if first else inner, part._content))
            elif isinstance(part, MarkdownList):
                below = _plain_lines(part, inner, depth + 1)
                if below is None:
                    return None
                if first:
                    lines.append(_Line(bullet, indent, Content("")))
                lines += below
            else:
                return None
            first = False
    return lines


def _bullets(block: MarkdownBlock, depth: int) -> list[str]:
    count = len(block._blocks)
    if not isinstance(block, MarkdownOrderedList):
        return [f"{_BULLETS[depth % len(_BULLETS)]} "] * count
    first = block._blocks[0] if count else None
    start = int(first.bullet) if isinstance(first, MarkdownListItem) and first.bullet.isdecimal() else 1
    size = len(str(start + count - 1))
    return [f"{number:>{size}}. " for number in range(start, start + count)]


def _rows(line: _Line, width: int) -> list[Content]:
    inner = line.indent + len(line.bullet)
    head = Content.assemble(" " * line.indent, (line.bullet, "$primary"))
    wrapped = line.text.wrap(max(_LEAST, width - inner)) or [Content("")]
    return [head + wrapped[0], *(row.pad_left(inner) for row in wrapped[1:])]
