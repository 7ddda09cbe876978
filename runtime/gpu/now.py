"""What all layers of one decode step share: where it stands, as tensors of the device."""

from dsv4chat.kernels.step_rows import Moment
from dsv4chat.kernels.step_start import Begun
from dsv4chat.runtime.gpu.state import StepState


class Now:
    """One step. bucket: the most tokens the context may hold in it, which fixes every shape."""

    def __init__(self, state: StepState, begun: Begun, bucket: int) -> None:
        self.bucket = bucket
        self.token = state.token
        self.position = state.position
        self._moments = {
            ratio: Moment(state.position, state.alive, begun.compressed, block)
            for ratio, block in begun.blocks.items()
        }
        # A layer with a window only turns by other frequencies.
        self._moments[0] = Moment(state.position, state.alive, begun.plain)

    def moment(self, ratio: int) -> Moment:
        """Where a layer of this ratio stands; 0: one with a window only."""
        return self._moments[ratio]

    def rows(self, ratio: int) -> int:
        """The most blocks of `ratio` tokens that can be visible in this bucket."""
        return self.bucket // ratio
