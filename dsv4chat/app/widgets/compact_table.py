"""A Markdown table drawn in one piece: aligned columns, a line below the head, no grid."""

from collections.abc import Sequence
from itertools import zip_longest

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets._markdown import MarkdownBlock, MarkdownTable, MarkdownTH

from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.drawn_block import DrawnBlock

_GAP = 2
_LEAST = 4  # cells a column keeps when there is too little room


class CompactTable(DrawnBlock, MarkdownTable):
    """Columns are as wide as their content; where that is too wide, the widest give way and cells wrap."""

    DEFAULT_CSS = beside(__file__)

    def compose(self) -> ComposeResult:
        self._alignments = _alignments(self)
        self._headers, self._rows = self._get_headers_and_rows()
        self._blocks.clear()
        self.draw = self._draw_table
        return iter(())

    def _draw_table(self, width: int) -> list[Content]:
        rows = [self._headers, *self._rows]
        widths = column_widths(rows, width)
        head = [cell.stylize("bold $primary") for cell in self._headers]
        lines = self._row(head, widths)
        lines.append(Content((" " * _GAP).join("─" * each for each in widths)).stylize("$border"))
        for row in self._rows:
            lines += self._row(row, widths)
        return lines

    def _row(self, cells: Sequence[Content], widths: Sequence[int]) -> list[Content]:
        columns = [
            cell.wrap(width)
            for cell, width in zip_longest(cells, widths, fillvalue=Content(""))
            if isinstance(width, int)
        ]
        return [
            Content(" " * _GAP).join(
                _aligned(cell, width, alignment)
                for cell, width, alignment in zip(line, widths, self._alignments, strict=False)
            )
            for line in zip_longest(*columns, fillvalue=Content(""))
        ]


def column_widths(rows: Sequence[Sequence[Content]], width: int) -> list[int]:
    """Cells for each column so that all fit into `width`, if that is possible at all."""
    count = max((len(row) for row in rows), default=0)
    widths = [
        max([1, *(row[index].cell_length for row in rows if index < len(row))]) for index in range(count)
    ]
    room = width - _GAP * (count - 1)
    while sum(widths) > room:
        widest = max(range(count), key=widths.__getitem__)
        others = max((each for index, each in enumerate(widths) if index != widest), default=_LEAST)
        if widths[widest] <= _LEAST:
            break
        surplus = sum(widths) - room
        widths[widest] -= max(1, min(surplus, widths[widest] - max(others, _LEAST)))
    return widths


def _aligned(cell: Content, width: int, alignment: str) -> Content:
    missing = max(0, width - cell.cell_length)
    if alignment == "right":
        return cell.pad_left(missing)
    if alignment == "center":
        return cell.pad(missing // 2, missing - missing // 2)
    return cell.pad_right(missing)


def _alignments(table: MarkdownBlock) -> list[str]:
    """Of each column, as the line below the head asks for it."""
    found: list[str] = []
    for block in table._blocks:
        if isinstance(block, MarkdownTH):
            style = str(block._token.attrs.get("style", ""))
            found.append(style.rpartition(":")[2] or "left")
        found += _alignments(block)
    return found
