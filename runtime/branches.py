"""The tree of everything a conversation was fed: stretches of ids that part where two versions differ.

    root - system text and first turns - answer A - next question
                                       \\ answer B

A branch is a stretch without a fork. It has its ids, the chunks they were fed in, the marks inside it, and
its own compressed rows from its start on; what stands before it is its parents'. So a shared beginning is
stored once, and whatever differs - an edited message, another answer, another system text - is a branch
beside the old one, down to two branches from the very start.

Where a branch's rows are: in the live cache (branches on the path in use), in memory (`rows`), or only on
disk (`stored`). Its marks likewise: in memory (`Mark.state`) or only on disk.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dsv4chat.runtime.cache import CacheMark, CacheRows
from dsv4chat.runtime.errors import SavedCacheError


class StoredBranch(Protocol):
    """A branch's file. Reading raises SavedCacheError when it is gone, damaged or of another model."""

    @property
    def name(self) -> str: ...

    @property
    def nbytes(self) -> int: ...

    def exists(self) -> bool: ...

    def read_rows(self, start: int, end: int) -> CacheRows: ...

    def read_mark(self, position: int) -> CacheMark: ...


@dataclass(eq=False)
class Mark:
    """A place to go back to: the state after `position` ids. boundary: a caller asked for it.

    state: None when it is only on disk, in `stored`.
    """

    position: int
    boundary: bool
    state: CacheMark | None
    stored: StoredBranch | None = None

    @property
    def nbytes(self) -> int:
        """Memory its state takes."""
        return self.state.nbytes if self.state is not None else 0

    def read(self) -> CacheMark:
        """Its state, from wherever it is. Raises SavedCacheError."""
        if self.state is not None:
            return self.state
        return _require(self.stored).read_mark(self.position)


@dataclass(eq=False)
class Branch:
    """A stretch of ids. marks: in order of position, all after `start` and at most at `end`.

    used: when it was last on the path in use, a count.
    """

    parent: "Branch | None" = None
    start: int = 0
    ids: list[int] = field(default_factory=list)
    chunks: list[int] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    rows: CacheRows | None = None
    stored: StoredBranch | None = None
    children: "list[Branch]" = field(default_factory=list)
    used: int = 0

    @property
    def end(self) -> int:
        """The position after its last id."""
        return self.start + len(self.ids)

    @property
    def nbytes(self) -> int:
        """Memory its rows and marks take outside the live cache."""
        rows = self.rows.nbytes if self.rows is not None else 0
        return rows + sum(mark.nbytes for mark in self.marks)

    def read_rows(self) -> CacheRows:
        """Its rows, from wherever they are outside the live cache. Raises SavedCacheError."""
        if self.rows is not None:
            return self.rows
        return _require(self.stored).read_rows(self.start, self.end)

    def path(self) -> "list[Branch]":
        """The branches from the first to this one, the root left out."""
        branches: list[Branch] = []
        branch: Branch | None = self
        while branch is not None and branch.parent is not None:
            branches.append(branch)
            branch = branch.parent
        return branches[::-1]

    def walk(self) -> "Iterator[Branch]":
        """This branch and all below it, parents first."""
        waiting = [self]
        while waiting:
            branch = waiting.pop()
            yield branch
            waiting += branch.children

    def mark_at(self, position: int) -> Mark | None:
        """The mark at exactly `position`."""
        return next((mark for mark in reversed(self.marks) if mark.position == position), None)

    def add_child(self) -> "Branch":
        """A new branch from this one's end."""
        child = Branch(self, self.end)
        self.children.append(child)
        return child

    def split(self, position: int) -> "Branch":
        """End this branch at `position` (a chunk's end inside it); the rest becomes a child, returned."""
        count = position - self.start
        chunks = _chunks_of(self.chunks, count)
        lower = Branch(self, position, self.ids[count:], self.chunks[chunks:], used=self.used)
        lower.marks = [mark for mark in self.marks if mark.position > position]
        lower.stored = self.stored
        lower.children = self.children
        for child in lower.children:
            child.parent = lower
        if self.rows is not None:
            lower.rows = self.rows.part(position, lower.end)
            self.rows = self.rows.part(self.start, position)
        del self.ids[count:], self.chunks[chunks:]
        self.marks = [mark for mark in self.marks if mark.position <= position]
        self.children = [lower]
        return lower

    def now_in(self, stored: StoredBranch) -> None:
        """Its rows and the marks in memory have been written to `stored`."""
        self.stored = stored
        self.marks = [mark for mark in self.marks if mark.state is not None]
        for mark in self.marks:
            mark.stored = stored

    def remove(self) -> None:
        """Forget this branch and all below it."""
        if self.parent is not None:
            self.parent.children.remove(self)
            self.parent = None


@dataclass(frozen=True)
class Place:
    """`position` ids of the path to `branch`; at most at its end."""

    branch: Branch
    position: int


def best_place(root: Branch, ids: Sequence[int], limit: int, present: Branch | None) -> Place:
    """The place furthest along `ids` one can go to, at most `limit` ids along; at worst the root, 0.

    present: the branch whose end is the live cache's state, a place even without a mark. Among equals it
    comes first, then what is in memory, then what was used last.
    """
    best = (0, present is root, True, root.used)
    place = Place(root, 0)
    waiting = [root]
    while waiting:
        branch = waiting.pop()
        common = common_length(branch.ids, ids, branch.start)
        reach = min(branch.start + common, limit)
        places = [(mark.position, mark.state is not None) for mark in branch.marks if mark.position <= reach]
        if branch is present and branch.end <= reach:
            places.append((branch.end, True))
        for position, in_memory in places[-2:]:
            rank = (position, branch is present and position == branch.end, in_memory, branch.used)
            if rank > best:
                best, place = rank, Place(branch, position)
        if common == len(branch.ids):
            waiting += branch.children
    return place


def common_length(first: Sequence[int], second: Sequence[int], offset: int) -> int:
    """How many ids from the beginning of `first` equal those of `second` from `offset` on."""
    longest = min(len(first), len(second) - offset)
    step = 512
    for start in range(0, longest, step):
        end = min(start + step, longest)
        if first[start:end] != second[offset + start : offset + end]:
            return next(i for i in range(start, end) if first[i] != second[offset + i])
    return longest


def thin(root: Branch, newest: Mark, limit: int) -> None:
    """Give up marks in memory, never `newest`, until they take at most `limit` bytes."""
    branches = list(root.walk())
    excess = sum(mark.nbytes for branch in branches for mark in branch.marks) - limit
    while excess > 0:
        choice = least_useful(branches, newest)
        if choice is None:
            return
        branch, mark = choice
        excess -= mark.nbytes
        if mark.stored is None:
            branch.marks.remove(mark)
        else:
            mark.state = None


def least_useful(branches: Sequence[Branch], newest: Mark | None) -> tuple[Branch, Mark] | None:
    """The mark in memory to give up first, never `newest`; None if there is no other.

    First those that are on disk as well, then those nobody asked for; among equals the one whose absence
    costs least: the most ids that might have to be fed again.
    """
    candidates = [
        (branch, index)
        for branch in branches
        for index, mark in enumerate(branch.marks)
        if mark.state is not None and mark is not newest
    ]
    if not candidates:
        return None
    branch, index = min(candidates, key=lambda candidate: _worth(*candidate))
    return branch, branch.marks[index]


def _worth(branch: Branch, index: int) -> tuple[bool, bool, int]:
    mark = branch.marks[index]
    before = branch.marks[index - 1].position if index else _last_mark_above(branch)
    after = branch.marks[index + 1].position if index + 1 < len(branch.marks) else branch.end
    return mark.stored is None, mark.boundary, after - before


def _last_mark_above(branch: Branch) -> int:
    above = branch.parent
    while above is not None:
        if above.marks:
            return above.marks[-1].position
        above = above.parent
    return 0


def _require(stored: StoredBranch | None) -> StoredBranch:
    if stored is None:
        raise SavedCacheError("A part of this conversation's cache is lost; its tokens are fed again.")
    return stored


def _chunks_of(chunks: Sequence[int], count: int) -> int:
    """How many of the chunks make up `count` ids."""
    total = 0
    for number, size in enumerate(chunks):
        if total == count:
            return number
        total += size
    return len(chunks)
