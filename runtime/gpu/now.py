"""What all layers of one decode step share: where it stands, as tensors of the device."""

from dsv4chat.kernels import rope
from dsv4chat.kernels.step_rows import Moment
from dsv4chat.runtime.gpu.state import StepState
from dsv4chat.runtime.step import Frequencies


class Now:
    """One step. bucket: the most tokens the context may hold in it, which fixes every shape."""

    def __init__(self, state: StepState, frequencies: Frequencies, bucket: int) -> None:
        self.bucket = bucket
        self.token = state.token
        self.position = state.position
        self.alive = state.alive
        self.rotation = rope.rotations(self.position, frequencies.compressed)  # (1, R / 2) complex64
        self._frequencies = frequencies
        self._moments: dict[int, Moment] = {}

    def moment(self, ratio: int) -> Moment:
        """Where a layer of this ratio stands; 0: one with a window only, which turns by other frequencies."""
        if ratio not in self._moments:
            self._moments[ratio] = self._moment(ratio)
        return self._moments[ratio]

    def _moment(self, ratio: int) -> Moment:
        if not ratio:
            plain = rope.rotations(self.position, self._frequencies.plain)
            return Moment(self.position, self.alive, plain)
        first = self.position // ratio * ratio
        block = rope.rotations(first, self._frequencies.compressed)
        return Moment(self.position, self.alive, self.rotation, block)

    def rows(self, ratio: int) -> int:
        """The most blocks of `ratio` tokens that can be visible in this bucket."""
        return self.bucket // ratio
