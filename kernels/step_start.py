"""How a decode step begins, in PyTorch: the token's embedding in every stream, and the rotations it needs.

plain           at the position, by the frequencies of layers with a window only
compressed      at the position, by those of the others
blocks[ratio]   by the same, at the first token of the position's block of `ratio`
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from dsv4chat.kernels.rope import rotations


@dataclass(frozen=True)
class StartWeights:
    """embedding: (vocab, d); plain, compressed: (R / 2,) float32 frequencies; streams: how many; ratios: of
    the layers' blocks, each once.
    """

    embedding: Tensor
    plain: Tensor
    compressed: Tensor
    streams: int
    ratios: Sequence[int]


@dataclass(frozen=True)
class Begun:
    """streams: (1, s, d) of the embedding's type; the rotations are (1, R / 2) complex64."""

    streams: Tensor
    plain: Tensor
    compressed: Tensor
    blocks: dict[int, Tensor]


class Start:
    """See the module."""

    def __init__(self, weights: StartWeights) -> None:
        self.weights = weights

    def __call__(self, token: Tensor, position: Tensor) -> Begun:
        """token, position: (1,) int64."""
        w = self.weights
        streams = w.embedding.index_select(0, token)[:, None, :].expand(-1, w.streams, -1)
        blocks = {ratio: rotations(position // ratio * ratio, w.compressed) for ratio in w.ratios}
        return Begun(streams, rotations(position, w.plain), rotations(position, w.compressed), blocks)
