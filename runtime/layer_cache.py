"""One layer's part of the key-value cache: window ring, compressed rows, and the block that is still open."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dsv4chat.kernels.kv_rows import Rows
from dsv4chat.runtime.config import ModelConfig

FIRST_BLOCKS = 64  # capacity of a layer's compressed rows when the first one comes
UNPACKED_BYTES = 1 << 20  # float32 copies of a layer's first packed rows


class OpenBlock:
    """The rows of the block a compressor has not closed yet.

    rows: (2, ratio, width) float32, kv and gate (with its position bias) of token t at t mod ratio.
    previous: (2, ratio, width / 2), the first channel group of the last closed block; CSA only.
    """

    def __init__(self, ratio: int, width: int, overlap: bool, device: torch.device) -> None:
        self.ratio = ratio
        self.rows = torch.zeros(2, ratio, width, device=device)
        self.previous = torch.zeros(2, ratio, width // 2, device=device) if overlap else None
        self.clear()

    def clear(self) -> None:
        """The state before the first token: a previous block of weight zero."""
        if self.previous is not None:
            self.previous[0] = 0.0
            self.previous[1] = -torch.inf

    def state(self, position: int) -> list[Tensor]:
        """Views of what is valid at `position`."""
        used = self.rows[:, : position % self.ratio]
        return [used] if self.previous is None else [used, self.previous]

    def tensors(self) -> list[Tensor]:
        return [self.rows] if self.previous is None else [self.rows, self.previous]


class BlockRows:
    """Append-only stored rows, one for each closed block, that grow in chunks up to `limit` rows.

    The rounded values of the first rows, up to UNPACKED_BYTES, are also kept as float32, so that short
    contexts are not unpacked again in every step. Longer ones are unpacked as they are read.
    """

    def __init__(self, format: Rows, d: int, limit: int, device: torch.device) -> None:
        self.format = format
        self.limit = limit
        self.stored = torch.empty(0, format.width, dtype=format.dtype, device=device)
        self.unpacked = self.stored if self._plain else torch.empty(0, d, device=device)
        self.unpacked_limit = limit if self._plain else min(limit, UNPACKED_BYTES // (4 * d))

    @property
    def _plain(self) -> bool:
        return self.format.dtype == torch.float32

    def hold(self, capacity: int) -> None:
        """Make room for `capacity` rows and keep no float32 copies: for one who writes to `stored` himself.

        It may be one row more than `limit`: of a block that is never closed.
        """
        self.limit = max(self.limit, capacity)
        self.unpacked_limit = self.limit if self._plain else 0
        self.stored = _grown(self.stored, self.stored.shape[0], capacity, capacity)
        self.unpacked = self.stored if self._plain else self.unpacked[:0]

    def write(self, first: int, rows: Tensor) -> None:
        """Store rows (m, d) float32 as blocks first..first + m."""
        stored = self.format.store(rows)
        self.write_rounded(first, stored, rows if self._plain else self.format.load(stored))

    def write_rounded(self, first: int, stored: Tensor, values: Tensor) -> None:
        """Put rows that are rounded already: stored (m, width) and their values (m, d)."""
        end = first + stored.shape[0]
        self.stored = _grown(self.stored, first, end, self.limit)
        self.stored[first:end] = stored
        if self._plain:
            self.unpacked = self.stored
        elif first < self.unpacked_limit:
            kept = min(end, self.unpacked_limit)
            self.unpacked = _grown(self.unpacked, first, kept, self.unpacked_limit)
            self.unpacked[first:kept] = values[: kept - first]

    def put(self, first: int, stored: Tensor) -> None:
        """Put stored rows (m, width) back as blocks first..first + m."""
        if stored.shape[0]:
            self.write_rounded(first, stored, stored if self._plain else self.format.load(stored))

    def load(self, count: int) -> Tensor:
        """The first `count` rows as float32 (count, d); not to be written to."""
        if count <= self.unpacked_limit:
            return self.unpacked[:count]
        return self.format.load(self.stored[:count])

    def gather(self, indices: Tensor, count: int) -> Tensor:
        """Rows of blocks `indices` (m,), all below `count`, as float32 (m, d)."""
        if count <= self.unpacked_limit:
            return self.unpacked.index_select(0, indices)
        if indices.shape[0] < count:
            return self.format.load(self.stored.index_select(0, indices))
        return self.load(count).index_select(0, indices)


def _grown(buffer: Tensor, used: int, needed: int, limit: int) -> Tensor:
    """`buffer` with room for `needed` rows, its first `used` rows kept.

    The others are zeros: a step of static shapes reads them and weighs them with 0, which NaN would survive.
    """
    capacity = buffer.shape[0]
    if needed <= capacity:
        return buffer
    grown = buffer.new_zeros(min(max(needed, 2 * capacity, FIRST_BLOCKS), limit), buffer.shape[1])
    grown[:used] = buffer[:used]
    return grown


class LayerCache:
    """One layer's part of the cache. `blocks`, `open_block`: compressed layers; `keys`, `open_key`: CSA."""

    def __init__(
        self,
        config: ModelConfig,
        layer: int,
        rows: Rows,
        keys: Rows,
        max_context: int,
        device: torch.device,
    ) -> None:
        kind, ratio = config.layer_kind(layer), config.compress_ratios[layer]
        self.rows = rows
        self.size = config.window
        self.ring = torch.zeros(config.window, rows.width, dtype=rows.dtype, device=device)
        # What attention reads: the ring's rounded values as float32 (the ring itself where it is float32).
        self.values = self.ring if rows.dtype == torch.float32 else rows.load(self.ring)
        if device.type == "cpu":  # what the CPU's decode step reads and writes: the same memory
            self.ring_bytes: npt.NDArray[np.uint8] = self.ring.view(torch.uint8).numpy()
            self.value_array: npt.NDArray[np.float32] = self.values.numpy()
        self.ratio = ratio
        self.blocks: BlockRows | None = None
        self.open_block: OpenBlock | None = None
        self.keys: BlockRows | None = None
        self.open_key: OpenBlock | None = None
        if kind != "window":
            overlap = kind == "csa"
            limit = max_context // ratio
            self.blocks = BlockRows(rows, config.head_dim, limit, device)
            self.open_block = OpenBlock(ratio, config.head_dim * (1 + overlap), overlap, device)
            if overlap:
                self.keys = BlockRows(keys, config.index_head_dim, limit, device)
                self.open_key = OpenBlock(ratio, config.index_head_dim * 2, True, device)

    def window_rows(self, position: int) -> Tensor:
        """The last min(position, window - 1) rows before `position`, oldest first: (c, d) float32."""
        count = min(position, self.size - 1)
        slots = torch.arange(position - count, position, device=self.values.device) % self.size
        return self.values.index_select(0, slots)

    def round(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Stored form and rounded values of new rows (n, d) float32."""
        stored = self.rows.store(rows)
        return stored, rows if self.values is self.ring else self.rows.load(stored)

    def write_window(self, position: int, stored: Tensor, values: Tensor) -> None:
        """Put the rows of positions `position`.. into their slots; only the last `window` of them stay."""
        count = min(stored.shape[0], self.size)
        end = position + stored.shape[0]
        slots = torch.arange(end - count, end, device=stored.device) % self.size
        self.ring.index_copy_(0, slots, stored[-count:])
        if self.values is not self.ring:
            self.values.index_copy_(0, slots, values[-count:])

    def unpack_window(self, position: int) -> None:
        """Bring the values in line with a ring that was written to, as far as it is valid at `position`."""
        if self.values is not self.ring:
            count = min(position, self.size)
            self.values[:count] = self.rows.load(self.ring[:count])

    def open_blocks(self) -> Iterator[OpenBlock]:
        for block in (self.open_block, self.open_key):
            if block is not None:
                yield block

    def tensors(self) -> Iterator[Tensor]:
        yield self.ring
        if self.values is not self.ring:
            yield self.values
        for rows in (self.blocks, self.keys):
            if rows is not None:
                yield rows.stored
                if rows.unpacked is not rows.stored:
                    yield rows.unpacked
        for block in self.open_blocks():
            yield from block.tensors()
