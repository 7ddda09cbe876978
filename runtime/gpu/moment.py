"""What all layers of one decode step share: where it stands, as tensors of the device."""

import torch
from torch import Tensor

from dsv4chat.kernels import rope
from dsv4chat.runtime.gpu.state import StepState
from dsv4chat.runtime.step import Frequencies


class Moment:
    """One step. bucket: the most tokens the context may hold in it, which fixes every shape."""

    def __init__(self, state: StepState, frequencies: Frequencies, bucket: int) -> None:
        self.bucket = bucket
        self.token = state.token
        self.position = state.position
        self.alive = state.alive
        self.plain_rotation = rope.rotations(self.position, frequencies.plain)  # (1, R / 2) complex64
        self.rotation = rope.rotations(self.position, frequencies.compressed)
        self._frequencies = frequencies
        self._blocks: dict[int, Tensor] = {}

    def block(self, ratio: int) -> Tensor:
        """The block of `ratio` tokens this step's token belongs to, (1,) int64."""
        return self.position // ratio

    def block_rotation(self, ratio: int) -> Tensor:
        """The rotation at that block's first token, (1, R / 2)."""
        if ratio not in self._blocks:
            self._blocks[ratio] = rope.rotations(self.block(ratio) * ratio, self._frequencies.compressed)
        return self._blocks[ratio]

    def visible(self, ratio: int) -> Tensor:
        """How many blocks the token may see, (1,) int64; the one it closes counts."""
        return (self.position + 1) // ratio

    def rows(self, ratio: int) -> int:
        """The most blocks of `ratio` tokens that can be visible in this bucket."""
        return self.bucket // ratio


def hidden_from(limit: Tensor, count: int) -> Tensor:
    """(1, count) float32: 0 for indices below `limit` (1,), else -inf."""
    index = torch.arange(count, device=limit.device)
    return torch.where(index < limit, 0.0, -torch.inf)[None]
