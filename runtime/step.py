"""What all layers share in one forward pass over n consecutive tokens: positions, rotations, tiles and masks.

Queries are taken in tiles, so that a tile's scores stay small and its window is a short slice of the
rows. The rows a window layer reads are the `before` last rows of the ring followed by the n new ones.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4chat.kernels import rope
from dsv4chat.runtime.config import ModelConfig

TILE_ROWS = 2048  # query heads times queries in a tile
SMALLEST_TILE = 16


@dataclass(frozen=True)
class Frequencies:
    """RoPE frequencies (R / 2,): `plain` for window-only layers, `compressed` for all others."""

    plain: Tensor
    compressed: Tensor

    @classmethod
    def of(cls, config: ModelConfig, device: torch.device) -> "Frequencies":
        plain = rope.frequencies(config.rope_head_dim, config.rope_theta, device=device)
        yarn = config.yarn
        if yarn is None:
            compressed = rope.frequencies(config.rope_head_dim, config.compress_rope_theta, device=device)
        else:
            compressed = rope.frequencies(
                config.rope_head_dim,
                config.compress_rope_theta,
                factor=yarn.factor,
                original_length=yarn.original_length,
                beta_fast=yarn.beta_fast,
                beta_slow=yarn.beta_slow,
                device=device,
            )
        return cls(plain, compressed)


@dataclass(frozen=True)
class Tile:
    """Queries first..last of the pass (last excluded), which read the window rows low..high of theirs."""

    first: int
    last: int
    low: int
    high: int


class Step:
    """One pass: `count` tokens from absolute position `position` on."""

    def __init__(self, config: ModelConfig, position: int, ids: Tensor, frequencies: Frequencies) -> None:
        self.position = position
        self.ids = ids
        self.count = ids.shape[0]
        self.device = ids.device
        self.window = config.window
        self.before = min(position, config.window - 1)
        self.frequencies = frequencies
        positions = torch.arange(position, position + self.count, device=self.device)
        self.plain_rotations = rope.rotations(positions, frequencies.plain)
        self.rotations = rope.rotations(positions, frequencies.compressed)
        size = max(SMALLEST_TILE, TILE_ROWS // config.num_heads)
        self.tiles = [
            Tile(
                first,
                min(first + size, self.count),
                max(0, first + self.before - config.window + 1),
                min(first + size, self.count) + self.before,
            )
            for first in range(0, self.count, size)
        ]
        self._block_rotations: dict[int, Tensor] = {}
        self._masks: dict[tuple[int, int], Tensor] = {}

    def closed_blocks(self, ratio: int) -> tuple[int, int]:
        """First block that this pass closes, and one past the last."""
        return self.position // ratio, (self.position + self.count) // ratio

    def visible_blocks(self, tile: Tile, ratio: int) -> Tensor:
        """How many blocks each query of the tile may see, (t,) int64."""
        start = self.position + 1
        return torch.arange(start + tile.first, start + tile.last, device=self.device) // ratio

    def most_visible(self, tile: Tile, ratio: int) -> int:
        """How many blocks the tile's last query may see."""
        return (self.position + tile.last) // ratio

    def block_rotations(self, ratio: int) -> Tensor:
        """Rotations of the blocks this pass closes, at the position of each block's first token."""
        if ratio not in self._block_rotations:
            blocks = torch.arange(*self.closed_blocks(ratio), device=self.device)
            self._block_rotations[ratio] = rope.rotations(blocks * ratio, self.frequencies.compressed)
        return self._block_rotations[ratio]

    def mask(self, tile: Tile, ratio: int) -> Tensor:
        """0 / -inf of a tile's queries over [its window rows, all blocks they may see, the sink's row].

        ratio 0: window rows and sink only. (t, rows + 1) float32, made once and shared by the layers.
        """
        key = (tile.first, ratio)
        if key not in self._masks:
            query = torch.arange(tile.first, tile.last, device=self.device)[:, None] + self.before
            row = torch.arange(tile.low, tile.high, device=self.device)[None, :]
            visible = [(row <= query) & (row > query - self.window)]
            if ratio:
                block = torch.arange(self.most_visible(tile, ratio), device=self.device)[None, :]
                visible.append(block < self.visible_blocks(tile, ratio)[:, None])
            visible.append(torch.ones_like(query, dtype=torch.bool))
            shown = torch.cat(visible, dim=1)
            self._masks[key] = torch.zeros(shown.shape, device=self.device).masked_fill_(~shown, -torch.inf)
        return self._masks[key]
