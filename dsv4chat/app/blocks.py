"""Where the finished blocks of a growing Markdown text end.

A block is given out once and never changes afterwards, so that it can be turned into widgets exactly once.
Cuts are made only where CommonMark ends a top-level block whatever follows; where that would take real
parsing (inside lists, say) the cut comes later, never earlier: parsing the pieces one by one gives the same
blocks as parsing the whole.
"""

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_INTERRUPTING_ITEM = re.compile(r" {0,3}(?:[-*+]|1[.)])[ \t]+\S")  # an empty one or "2." is text there
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})")
_INDENTED = re.compile(r"(?: {4}| {0,3}\t)")


class BlockSplitter:
    """Takes a text in pieces, gives out finished blocks; what is left is the open block.

    kind: of the open block: "" (none), "fence", "list", "indented", "unclear" or "text".
    """

    def __init__(self) -> None:
        self.kind = ""
        self._lines: list[str] = []
        self._partial = ""
        self._closing = re.compile("")
        self._blank = False
        self._lazy = False  # an unindented line that may or may not belong to the open list
        self._inside = 0  # columns a line needs to be inside the last item

    @property
    def open(self) -> str:
        """The text that is not given out yet."""
        return "".join(self._lines) + self._partial

    def push(self, text: str) -> list[str]:
        """Add a piece; returns the blocks that are finished now, in order."""
        finished: list[str] = []
        *whole, self._partial = (self._partial + text).split("\n")
        for line in whole:
            self._line(line, finished)
        return finished

    def finish(self) -> list[str]:
        """The end of the text: returns what was open, if anything, and starts afresh."""
        finished: list[str] = []
        if self._partial:
            self._lines.append(self._partial)
            self._partial = ""
        self._emit(finished)
        return finished

    def _line(self, line: str, finished: list[str]) -> None:
        if self.kind == "fence":
            self._lines.append(line + "\n")
            if self._closing.fullmatch(line):
                self._emit(finished)
            return
        if not line.strip(" \t"):
            self._empty_line(line, finished)
            return
        if self.kind == "list":
            self._after_list(line, finished)
        elif (self.kind == "indented" and not _INDENTED.match(line)) or (
            self.kind == "text"
            and (_fence_of(line) or _HEADING.match(line) or _INTERRUPTING_ITEM.match(line))
        ):
            self._emit(finished)
        self._blank = False
        if not self.kind:
            self._begin(line)
        elif self.kind == "text" and _ITEM.match(line):
            self.kind, self._lazy, self._inside = "list", True, 0
        self._lines.append(line + "\n")
        if len(self._lines) == 1 and (_HEADING.match(line) or _RULE.fullmatch(line)):
            self._emit(finished)

    def _after_list(self, line: str, finished: list[str]) -> None:
        """A line while a list is open: does it end it for certain?"""
        rule, item, fence = _RULE.fullmatch(line), _ITEM.match(line), _fence_of(line)
        if rule and not line.startswith((" ", "\t")) and not (self._lazy and "-" in line):
            self._emit(finished)
        elif item and not rule:
            self._lazy = self._lazy and not _INTERRUPTING_ITEM.match(line)
            self._inside = _columns_inside(line)
        elif not line.startswith((" ", "\t")):
            # After an empty line only an indented line or another item goes on with a list.
            if self._blank or fence or _HEADING.match(line) or line[0] == ">":
                self._emit(finished)
            else:
                self._lazy = True
        else:
            self._lazy = self._lazy or len(line) - len(line.lstrip(" ")) < self._inside
            if fence and self._lazy:
                # Inside the list or not? It decides what the lines after it are, so cut nowhere any more.
                self.kind = "unclear"

    def _empty_line(self, line: str, finished: list[str]) -> None:
        if self.kind in ("list", "indented", "unclear"):
            self._blank = True
            self._lines.append(line + "\n")
        elif self.kind == "text" and _INDENTED.match(self._lines[-1]):
            self.kind = "indented"  # code after a heading, perhaps: then it may go on after the empty line
            self._lines.append(line + "\n")
        else:
            self._emit(finished)

    def _begin(self, line: str) -> None:
        fence = _fence_of(line)
        if fence:
            self.kind = "fence"
            self._closing = re.compile(rf" {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*")
        elif _INDENTED.match(line):
            self.kind = "indented"
        elif _ITEM.match(line):
            self.kind = "list"
            self._inside = _columns_inside(line)
        else:
            self.kind = "text"

    def _emit(self, finished: list[str]) -> None:
        text = "".join(self._lines)
        if text.strip():
            finished.append(text)
        self._lines.clear()
        self.kind = ""
        self._blank = self._lazy = False


def _fence_of(line: str) -> str | None:
    """The marker if the line opens a fence; a backtick fence has no backtick in its info string."""
    match = _FENCE.match(line)
    if match is None or (match[1][0] == "`" and "`" in match[2]):
        return None
    return match[1]


def _columns_inside(item: str) -> int:
    """How far a line must be indented to be part of an item; an empty item ends at an empty line: never."""
    rest = _ITEM.sub("", item, count=1)
    return len(item) - len(rest) if rest.strip() else 99
