"""One conversation's warm cache: everything it was fed, and how to go from one place in it to another.

The window ring and the open blocks cannot be rewound, so the session keeps marks: copies of that small state
where a conversation may return to. A turn names all of its ids; the session finds the place furthest along
them in its tree of branches (branches.py), goes there and feeds the rest. Going to a version that was left,
or to another conversation, costs a copy into the live cache (live_cache.py), not a prefill.

Results depend, in their last bits, on how the ids were cut into chunks (chunks.py). `chunks` lists the cuts
that led to the present state, so that a fresh engine can repeat them exactly.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from dsv4chat.runtime.branches import Branch, Mark, best_place, thin
from dsv4chat.runtime.cache import CacheMark, CacheRows
from dsv4chat.runtime.chunks import PREFILL_STEP, chunk_sizes
from dsv4chat.runtime.errors import EngineError, SavedCacheError
from dsv4chat.runtime.live_cache import LiveCache
from dsv4chat.runtime.model import Model, Output

MARK_BYTES = 256 * 2**20

Source = Literal["none", "memory", "disk"]


@dataclass(frozen=True)
class Plan:
    """What a turn will do: `reused` ids stay, then `chunks` are fed (sizes; their sum is all the rest).

    source: where the state of the reused ids was: "memory", "disk", or "none" when none are.
    turn: a number that this session's later turns do not have.
    """

    reused: int
    source: Source
    chunks: tuple[int, ...]
    turn: int


class Session:
    """What one conversation was fed, with marks. Not for several threads at once.

    root: the tree of its branches. tip: the branch at whose end the conversation is. uses: how often a path
    has been used. notices: see `take_notices`.
    """

    def __init__(
        self,
        model: Model,
        live: LiveCache,
        *,
        prefill_step: int = PREFILL_STEP,
        mark_bytes: int = MARK_BYTES,
    ) -> None:
        self.model = model
        self.live = live
        self._prefill_step = prefill_step
        self._mark_bytes = mark_bytes
        self.root = Branch()
        self.tip = self.root
        self.uses = 0
        self.notices: list[str] = []
        self._boundaries: frozenset[int] = frozenset()
        self._turns = 0

    # ---- the present state ---------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """How many ids have been fed."""
        return self.tip.end

    @property
    def ids(self) -> list[int]:
        """The ids that led to the present state."""
        return [token for branch in self.tip.path() for token in branch.ids]

    @property
    def chunks(self) -> list[int]:
        """The sizes of the chunks they were fed in."""
        return [size for branch in self.tip.path() for size in branch.chunks]

    @property
    def is_live(self) -> bool:
        """Whether the live cache is this session's."""
        return self.live.owner is self

    @property
    def live_bytes(self) -> int:
        """Bytes in the live cache."""
        return self.live.nbytes if self.is_live else 0

    @property
    def nbytes(self) -> int:
        """Bytes of its rows and marks outside the live cache."""
        return sum(branch.nbytes for branch in self.root.walk())

    def notice(self, error: SavedCacheError) -> None:
        """Note once that something saved cannot be used."""
        if str(error) not in self.notices:
            self.notices.append(str(error))

    def take_notices(self) -> list[str]:
        """What has not been told yet about saved parts that could not be used: a sentence, or none."""
        notices, self.notices = self.notices, []
        if len(notices) > 1:
            return [f"{notices[0]} So it is with {len(notices) - 1} more."]
        return notices

    # ---- a turn --------------------------------------------------------------------------------------

    def reusable(self, ids: Sequence[int]) -> int:
        """How many of `ids` (a turn's whole prompt, not empty) `prepare` would not have to feed."""
        return best_place(self.root, ids, len(ids) - 1, self._present).position

    def prepare(self, ids: Sequence[int], boundaries: Iterable[int] = ()) -> Plan:
        """Go as far along `ids` (the turn's whole prompt, not empty) as possible; say what is to be fed.

        At least the last id is fed, alone, because the logits after it are needed. boundaries: positions in
        `ids` at which to keep marks.
        """
        self.live.refuse_inside_a_step()
        self._boundaries = frozenset(b for b in boundaries if 0 < b < len(ids)) | {len(ids) - 1}
        while True:
            place = best_place(self.root, ids, len(ids) - 1, self._present)
            try:
                source = self._go_to(place.branch, place.position)
                break
            except SavedCacheError as error:  # what could not be read is forgotten: the next best place
                self.notice(error)
        if self.position in self._boundaries:  # reached by decoding, which kept no mark here
            self.keep_tip()
        sizes = chunk_sizes(
            self.position,
            len(ids),
            self._boundaries,
            self._prefill_step,
            few_alone=self.model.decoder is not None,
        )
        self._turns += 1
        return Plan(self.position, source, tuple(sizes), self._turns)

    def feed(self, ids: Sequence[int], turn: int) -> Output:
        """Feed one chunk of `turn` and return the logits (1, vocab) and |X| after its last id.

        A mark is kept where `prepare` was told to, and at multiples of the prefill step. Raises EngineError
        when a later turn has been prepared: its ids are in the cache now.
        """
        self.ready(turn)
        output = self.live.step(self.model, ids)
        self.note(ids)
        return output

    def ready(self, turn: int) -> None:
        """Make the live cache this session's again, where `turn` stands. Raises EngineError as `feed`."""
        if turn != self._turns:
            raise EngineError("Another turn of this conversation began; finish a turn before the next.")
        self.live.refuse_inside_a_step()
        if self._present is None:  # another conversation had its turn meanwhile
            self._go_to(self.tip, self.tip.end)

    def note(self, ids: Sequence[int]) -> None:
        """One chunk was fed to the live cache."""
        tip = self._growing_tip()
        tip.ids.extend(ids)
        tip.chunks.append(len(ids))
        self.live.whole = True
        boundary = tip.end in self._boundaries
        if boundary or tip.end % self._prefill_step == 0:
            self._keep_mark(boundary)

    def _growing_tip(self) -> Branch:
        """The branch that the next ids belong to. One that forks or is saved does not grow any more."""
        if self.tip is self.root or self.tip.children or self.tip.stored is not None:
            self.tip = self.tip.add_child()
            self.live.path.append(self.tip)
            self._touch()
        return self.tip

    # ---- going from place to place -------------------------------------------------------------------

    def go_to_last_mark(self, branch: Branch) -> None:
        """Make the last mark on the path to `branch` the present state.

        Raises SavedCacheError when it cannot be read; what could not be is forgotten then.
        """
        while branch.parent is not None and not branch.marks:
            branch = branch.parent
        self._go_to(branch, branch.marks[-1].position if branch.marks else 0)

    def leave(self) -> None:
        """Take everything out of the live cache, for another session."""
        if self.is_live:
            self.keep_tip()
            self.live.take_out()
            self.live.owner = None

    @property
    def _present(self) -> Branch | None:
        """The tip, if the live cache is there; None if its state is not known or another session's."""
        return self.tip if self.is_live and self.live.whole else None

    def _go_to(self, branch: Branch, position: int) -> Source:
        """Make `position` of the path to `branch` the present state."""
        live = self.live
        if branch is self._present and position == branch.end:
            self._touch()
            return "memory" if position else "none"
        # Everything is read before anything is changed, and before a new mark may push out an old one.
        state, from_disk = self._read_state(branch, position)
        self.keep_tip()
        if position < branch.end:
            live.split(branch, position)
            if self.tip is branch:
                (self.tip,) = branch.children
        target = branch.path()
        common = live.shared(target)
        missing = target[common:]
        from_disk |= any(part.rows is None for part in missing)
        rows = [self._read_rows(part) for part in missing]
        if live.owner is not None and live.owner is not self:
            live.owner.leave()
        live.take_out(common)
        live.owner = self
        live.put_in(missing, rows, state)
        self.tip = branch
        self._touch()
        return "none" if position == 0 else "disk" if from_disk else "memory"

    def _read_state(self, branch: Branch, position: int) -> tuple[CacheMark | None, bool]:
        """The state at a place and whether it came from disk; None for the very start."""
        if position == 0:
            return None, False
        mark = branch.mark_at(position)
        if mark is None:
            raise EngineError("The state after an interrupted step is not known; begin the turn again.")
        if mark.state is not None:
            return mark.state, False
        try:
            return mark.read(), True
        except SavedCacheError:
            if mark.stored is not None and mark.stored.exists():
                branch.marks.remove(mark)
            else:
                branch.marks = [mark for mark in branch.marks if mark.state is not None]
                if branch.rows is None and branch not in self.live.path:
                    self.forget(branch)
            raise

    def _read_rows(self, branch: Branch) -> CacheRows:
        try:
            return branch.read_rows()
        except SavedCacheError:
            self.forget(branch)
            raise

    def _touch(self) -> None:
        self.uses += 1
        for branch in self.live.path:
            branch.used = self.uses

    # ---- what is kept --------------------------------------------------------------------------------

    def keep_tip(self) -> None:
        """Keep a mark at the present position, if it has none and its state is whole."""
        tip = self._present
        if tip is not None and tip is not self.root and tip.mark_at(tip.end) is None:
            self._keep_mark(boundary=True)

    def rows_of(self, branch: Branch) -> CacheRows:
        """A branch's rows, from wherever they are. Raises SavedCacheError."""
        if self.is_live and branch in self.live.path:
            return self.live.cache.take_rows(branch.start, branch.end)
        return branch.read_rows()

    def left_branches(self) -> list[Branch]:
        """The branches outside the live cache that take memory, those used longest ago first, ends first."""
        path = self.live.path
        left = [branch for branch in self.root.walk() if branch not in path and branch.nbytes]
        return sorted(left, key=lambda branch: (branch.used, -branch.start))

    def forget(self, branch: Branch) -> None:
        """Forget a branch outside the live cache, with all that follows it; a turn on it cannot go on."""
        if self.tip in branch.walk():
            self.tip = self.root
            self._turns += 1
        branch.remove()

    def _keep_mark(self, boundary: bool) -> None:
        newest = Mark(self.position, boundary, self.live.cache.checkpoint())
        self.tip.marks.append(newest)
        thin(self.root, newest, self._mark_bytes)
