"""One conversation's warm cache: what was fed, and where it is possible to go back to.

The window ring and the open blocks cannot be rewound, so the session keeps marks: copies of that small state
at positions a conversation may return to. A turn names all of its ids; the session finds the longest common
prefix with what it fed, goes back to the newest mark at or before it and feeds the rest.

Results depend, in their last bits, on how the ids were cut into chunks. `chunks` lists the cuts that led to
the present state, so that a fresh engine can repeat them exactly.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from dsv4chat.runtime.cache import CacheMark, KVCache
from dsv4chat.runtime.errors import EngineError
from dsv4chat.runtime.model import Model, Output

# The most ids fed at once, and the distance of the marks inside a long message: a multiple of 128, where no
# block of either ratio is open.
PREFILL_STEP = 256
MARK_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Mark:
    """A place to go back to: `position` ids fed, in `chunks` chunks. boundary: asked for by the caller."""

    position: int
    chunks: int
    boundary: bool
    state: CacheMark


@dataclass(frozen=True)
class Plan:
    """What a turn will do: `reused` ids stay, then `chunks` are fed (sizes; their sum is all the rest).

    turn: a number that this session's later turns do not have.
    """

    reused: int
    chunks: tuple[int, ...]
    turn: int


class Session:
    """The ids fed to one cache, with marks. Not for several threads at once."""

    def __init__(
        self,
        model: Model,
        kv_dtype: str,
        max_context: int,
        *,
        prefill_step: int = PREFILL_STEP,
        mark_bytes: int = MARK_BYTES,
    ) -> None:
        self._model = model
        self._prefill_step = prefill_step
        self._mark_bytes = mark_bytes
        self.ids: list[int] = []
        self.chunks: list[int] = []
        self.marks: list[Mark] = []
        self._boundaries: frozenset[int] = frozenset()
        self._interrupted = False
        self._turns = 0
        self.cache = KVCache(model.config, kv_dtype, max_context, model.device)

    @property
    def position(self) -> int:
        """How many ids have been fed."""
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """Bytes of the cache and its marks."""
        return self.cache.nbytes + sum(mark.state.nbytes for mark in self.marks)

    def prepare(self, ids: Sequence[int], boundaries: Iterable[int] = ()) -> Plan:
        """Go back as far as `ids` (the turn's whole prompt, not empty) demands, and say what is to be fed.

        At least the last id is fed, alone, because the logits after it are needed. boundaries: positions in
        `ids` at which to keep marks.
        """
        self._boundaries = frozenset(b for b in boundaries if 0 < b < len(ids)) | {len(ids) - 1}
        self._go_back(min(_common_prefix(self.ids, ids), len(ids) - 1))
        cuts = cut(self.position, len(ids), self._boundaries, self._prefill_step)
        edges = [self.position, *cuts]
        self._turns += 1
        return Plan(self.position, tuple(b - a for a, b in pairwise(edges)), self._turns)

    def feed(self, ids: Sequence[int], turn: int) -> Output:
        """Feed one chunk of `turn` and return the logits (1, vocab) and |X| after its last id.

        A mark is kept where `prepare` was told to, and at multiples of the prefill step. Raises EngineError
        when a later turn has been prepared: its ids are in the cache now.
        """
        if turn != self._turns:
            raise EngineError("Another turn of this conversation began; finish a turn before the next.")
        self._interrupted = True
        tensor = torch.tensor(ids, dtype=torch.int64, device=self.cache.device)
        output = self._model.forward(tensor, self.cache, "last")
        self.ids.extend(ids)
        self.chunks.append(len(ids))
        self._interrupted = False
        boundary = self.position in self._boundaries
        if boundary or self.position % self._prefill_step == 0:
            self._keep_mark(boundary)
        return output

    def _go_back(self, position: int) -> None:
        """Return to the newest reachable state with at most `position` ids fed."""
        if self.position <= position and not self._interrupted:
            return
        # After an interrupted chunk the present state is unknown; every mark is older than it and stays good.
        self.marks = [mark for mark in self.marks if mark.position <= position]
        if self.marks:
            mark = self.marks[-1]
            self.cache.restore(mark.state)
            del self.ids[mark.position :], self.chunks[mark.chunks :]
        else:
            self.cache.clear()
            self.ids, self.chunks = [], []
        self._interrupted = False

    def _keep_mark(self, boundary: bool) -> None:
        self.marks.append(Mark(self.position, len(self.chunks), boundary, self.cache.checkpoint()))
        while len(self.marks) > 1 and sum(mark.state.nbytes for mark in self.marks) > self._mark_bytes:
            del self.marks[least_useful([(mark.position, mark.boundary) for mark in self.marks])]


def cut(start: int, end: int, boundaries: Iterable[int], step: int) -> list[int]:
    """Where chunks end when positions start..end are fed: at boundaries, multiples of `step`, and `end`."""
    if step < 1:
        raise EngineError(f"The prefill step is {step}; it must be 1 or more.")
    inner = {position for position in boundaries if start < position < end}
    inner.update(range(start - start % step + step, end, step))
    return [*sorted(inner), end] if end > start else []


def least_useful(marks: Sequence[tuple[int, bool]]) -> int:
    """The index of the mark to drop, never the newest, given (position, boundary) in order of position.

    First those nobody asked for; among equals the one whose absence costs least: the ids between its
    neighbours.
    """

    def cost(index: int) -> tuple[bool, int]:
        before = marks[index - 1][0] if index else 0
        return marks[index][1], marks[index + 1][0] - before

    return min(range(len(marks) - 1), key=cost)


def _common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    for index, (a, b) in enumerate(zip(first, second, strict=False)):
        if a != b:
            return index
    return min(len(first), len(second))
