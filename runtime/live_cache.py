"""An engine's one cache in use: whose ids it holds, and the rows of which branches.

It holds one path of one session's tree. Moving to another path takes the rows of the branches that are left
out of it, compactly, and puts those of the other path in; what both share stays where it is.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from dsv4chat.runtime.branches import Branch
from dsv4chat.runtime.cache import CacheMark, CacheRows, KVCache
from dsv4chat.runtime.errors import EngineError
from dsv4chat.runtime.model import Model, Output

if TYPE_CHECKING:
    from dsv4chat.runtime.gpu.decoding import Decoding
    from dsv4chat.runtime.session import Session


class LiveCache:
    """The cache and what is in it.

    owner: the session whose ids it holds. path: the branches of its tree whose rows are here, from the first.
    whole: whether the state is the one after the path's last id; not so after an interrupted step.
    """

    def __init__(self, cache: KVCache) -> None:
        self.cache = cache
        self.owner: Session | None = None
        self.path: list[Branch] = []
        self.whole = True
        self.stepping = False  # inside a step
        self.decoding: Decoding | None = None  # steps on the device, made by the first turn that takes them

    @property
    def nbytes(self) -> int:
        """Bytes of the path's rows and of the small state."""
        end = self.path[-1].end if self.path else 0
        return self.cache.row_bytes(0, end) + self.cache.small_bytes

    def refuse_inside_a_step(self) -> None:
        """An abandoned turn's iterator may be closed at any moment, even while another turn computes."""
        if self.stepping:
            raise EngineError("Another turn is being computed; wait for it to end.")

    def step(self, model: Model, ids: Sequence[int]) -> Output:
        """Feed ids after what is here; the caller notes them in the path's last branch and says `whole`."""
        tensor = torch.tensor(ids, dtype=torch.int64, device=self.cache.device)
        self.whole, self.stepping = False, True
        try:
            return model.forward(tensor, self.cache, "last")
        finally:
            self.stepping = False

    def split(self, branch: Branch, position: int) -> None:
        """End a branch of the owner's tree at `position`, wherever its rows are."""
        lower = branch.split(position)
        if branch in self.path:
            self.path.insert(self.path.index(branch) + 1, lower)

    def shared(self, target: Sequence[Branch]) -> int:
        """How many of the first branches of the path to `target` are here."""
        count = 0
        for here, there in zip(self.path, target, strict=False):
            if here is not there:
                break
            count += 1
        return count

    def take_out(self, keep: int = 0) -> None:
        """Take the rows of all but the first `keep` branches out, into memory."""
        while len(self.path) > keep:
            self.whole = False
            branch = self.path[-1]
            branch.rows = self.cache.take_rows(branch.start, branch.end)
            self.path.pop()

    def put_in(self, branches: Sequence[Branch], rows: Sequence[CacheRows], state: CacheMark | None) -> None:
        """Put branches after those that are here, and the state at the end; None: that of an empty cache."""
        self.whole = False  # until all is in place
        for branch, held in zip(branches, rows, strict=True):
            self.cache.put_rows(held)
            self.path.append(branch)
            branch.rows = None
        if state is None:
            self.cache.clear()
        else:
            self.cache.restore(state)
        self.whole = True
