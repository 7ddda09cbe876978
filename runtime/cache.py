"""The key-value cache of one conversation, and what is needed to go back in it.

Each layer holds the window ring (the last `window` rows of kv, slot = position mod window). A compressed
layer also holds its compressed rows, one for `ratio` tokens, and the rows of the block that is still
open; a CSA layer holds the same once more for the indexer's keys. Everything is a function of `position`:
how many slots, blocks and open rows are valid, so that going back is putting the small state back and
setting the position.

Compressed rows and keys are append-only and grow geometrically up to what `max_context` needs. A stretch of
them can be taken out and put back (`CacheRows`); with the small state at its end (`CacheMark`) that is all
there is to a conversation that is not in use. What is taken out is in host memory, wherever the cache is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from dsv4chat.kernels.kv_rows import Fp4Keys, Fp8Rows, PlainRows, Rows
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.errors import ContextOverflowError, EngineError
from dsv4chat.runtime.layer_cache import BlockRows, LayerCache

KV_DTYPES = ("float32", "bfloat16", "fp8")


@dataclass(frozen=True)
class CacheMark:
    """The state of a cache at `position` that cannot be rewound, copied.

    tensors: for each layer its ring (the valid slots), then of each open block its rows (2, open, width)
    and, in CSA layers, the block before (2, ratio, width / 2).
    """

    position: int
    tensors: tuple[Tensor, ...]

    @cached_property
    def nbytes(self) -> int:
        """Memory the copies take."""
        return sum(t.nbytes for t in self.tensors)


@dataclass(frozen=True)
class CacheRows:
    """The compressed rows of the blocks that positions start..end close, copied.

    tensors: for each compressed layer its stored rows (blocks, width), then, in CSA layers, its stored keys.
    ratios: how many tokens a row of each stands for.
    """

    start: int
    end: int
    tensors: tuple[Tensor, ...]
    ratios: tuple[int, ...]

    @cached_property
    def nbytes(self) -> int:
        """Memory the copies take."""
        return sum(t.nbytes for t in self.tensors)

    def part(self, start: int, end: int) -> "CacheRows":
        """The rows of a part of the positions, in memory of their own."""
        cuts = [(start // r - self.start // r, end // r - self.start // r) for r in self.ratios]
        parts = tuple(t[a:b].clone() for t, (a, b) in zip(self.tensors, cuts, strict=True))
        return CacheRows(start, end, parts, self.ratios)


class KVCache:
    """The cache of one conversation.

    kv_dtype: "float32", "bfloat16", or "fp8" (E4M3 with bfloat16 RoPE channels, index keys in 4 bits).
    max_context: the most tokens it will hold. position: tokens fed so far.
    """

    def __init__(self, config: ModelConfig, kv_dtype: str, max_context: int, device: torch.device) -> None:
        """Raises EngineError for an unknown kv_dtype, a max_context below 1, or sizes fp8 cannot store."""
        if max_context < 1:
            raise EngineError(f"The context must hold at least 1 token, not {max_context}.")
        self.kv_dtype = kv_dtype
        self.max_context = max_context
        self.device = device
        self._position = 0
        self._busy = False
        self.rows, self.keys = _formats(config, kv_dtype, device)
        self.layers = [
            LayerCache(config, i, self.rows, self.keys, max_context, device) for i in range(config.num_layers)
        ]

    @property
    def position(self) -> int:
        """Tokens fed so far, which is the position of the next one."""
        return self._position

    @property
    def nbytes(self) -> int:
        """Memory held by all buffers."""
        return sum(t.nbytes for layer in self.layers for t in layer.tensors())

    def begin(self, tokens: int) -> int:
        """Claim room for the next tokens; returns their first position. `commit` must follow.

        Raises ContextOverflowError (nothing is changed) when they do not fit.
        """
        if self._busy:
            raise EngineError("A step on this cache was interrupted; restore a mark or clear it first.")
        if self._position + tokens > self.max_context:
            raise ContextOverflowError(
                f"{self._position} tokens are in the context and {tokens} more do not fit into "
                f"{self.max_context}; shorten the conversation or load the model with a larger context."
            )
        self._busy = True
        return self._position

    def commit(self, tokens: int) -> None:
        """The tokens of the last `begin` are in every layer."""
        self._position += tokens
        self._busy = False

    def clear(self) -> None:
        """Back to the first token. Buffers stay."""
        for layer in self.layers:
            for block in layer.open_blocks():
                block.clear()
        self._go_to(0)

    def checkpoint(self) -> CacheMark:
        """Copies of the state that a later step overwrites, to return to this position.

        Raises EngineError after an interrupted step.
        """
        if self._busy:
            raise EngineError("A step on this cache was interrupted; restore a mark or clear it first.")
        position = self._position
        return CacheMark(position, tuple(_copy(part) for part in self._small_state(position)))

    @torch.inference_mode()
    def restore(self, mark: CacheMark) -> None:
        """Go to `mark`. The rows of the blocks below it must be here: unchanged, or put back.

        Raises EngineError (nothing is changed) for a mark of a cache of other sizes.
        """
        if mark.position > self.max_context:
            raise EngineError(
                f"A cache of {self.max_context} tokens cannot hold the {mark.position} of this mark."
            )
        places = self._small_state(mark.position)
        _check_alike(mark.tensors, [(place.shape, place.dtype) for place in places])
        for saved, place in zip(mark.tensors, places, strict=True):
            place.copy_(saved)
        for layer in self.layers:
            layer.unpack_window(mark.position)
        self._go_to(mark.position)

    def take_rows(self, start: int, end: int) -> CacheRows:
        """Copies of the rows of the blocks that positions start..end close; all of them have been fed."""
        copies = tuple(_copy(blocks.stored[start // r : end // r]) for blocks, r in self._blocks())
        return CacheRows(start, end, copies, self.ratios)

    @property
    def ratios(self) -> tuple[int, ...]:
        """How many tokens a row stands for, of all append-only rows in their order."""
        return tuple(ratio for _, ratio in self._blocks())

    @torch.inference_mode()
    def put_rows(self, rows: CacheRows) -> None:
        """Write rows back into their places; a `restore` at or after their end must follow.

        Raises EngineError (nothing is changed) for rows of a cache of other sizes.
        """
        _check_alike(
            rows.tensors,
            [
                (
                    torch.Size((rows.end // ratio - rows.start // ratio, blocks.format.width)),
                    blocks.format.dtype,
                )
                for blocks, ratio in self._blocks()
            ],
        )
        self._busy = True
        for (blocks, ratio), stored in zip(self._blocks(), rows.tensors, strict=True):
            blocks.put(rows.start // ratio, stored.to(self.device))

    def row_bytes(self, start: int, end: int) -> int:
        """Bytes that the rows of the blocks which positions start..end close take."""
        return sum(
            (end // ratio - start // ratio) * blocks.format.width * blocks.format.dtype.itemsize
            for blocks, ratio in self._blocks()
        )

    @property
    def small_bytes(self) -> int:
        """Bytes of the rings and open blocks."""
        rings = sum(layer.ring.nbytes for layer in self.layers)
        blocks = (block for layer in self.layers for block in layer.open_blocks())
        return rings + sum(t.nbytes for block in blocks for t in block.tensors())

    def _small_state(self, position: int) -> list[Tensor]:
        """Views of everything that is not append-only, as far as it is valid at `position`."""
        parts = []
        for layer in self.layers:
            parts.append(layer.ring[: min(position, layer.size)])
            for block in layer.open_blocks():
                parts += block.state(position)
        return parts

    def _blocks(self) -> Iterator[tuple[BlockRows, int]]:
        """All append-only rows, and how many tokens a row of them stands for."""
        for layer in self.layers:
            for blocks in (layer.blocks, layer.keys):
                if blocks is not None:
                    yield blocks, layer.ratio

    def _go_to(self, position: int) -> None:
        self._position = position
        self._busy = False


def _copy(tensor: Tensor) -> Tensor:
    """A compact copy in host memory."""
    return tensor.to("cpu", copy=True, memory_format=torch.contiguous_format)


def _check_alike(given: Sequence[Tensor], wanted: list[tuple[torch.Size, torch.dtype]]) -> None:
    """Raises EngineError unless shapes and types are as wanted, one by one."""
    if [(t.shape, t.dtype) for t in given] != wanted:
        raise EngineError("This state belongs to a cache of other sizes; feed the tokens again.")


def _formats(config: ModelConfig, kv_dtype: str, device: torch.device) -> tuple[Rows, Rows]:
    """Storage of kv rows and of index keys."""
    if kv_dtype == "fp8":
        d = config.index_head_dim
        if "csa" in config.layer_kinds and (d < 2 or d & (d - 1)):
            raise EngineError(
                f"4-bit index keys need an index head of a power of two, not {d}; choose kv_dtype bfloat16."
            )
        keys: Rows = Fp4Keys(d, device) if "csa" in config.layer_kinds else PlainRows(d, torch.float32)
        return Fp8Rows(config.head_dim, config.rope_head_dim), keys
    if kv_dtype in ("float32", "bfloat16"):
        dtype = torch.float32 if kv_dtype == "float32" else torch.bfloat16
        return PlainRows(config.head_dim, dtype), PlainRows(config.index_head_dim, dtype)
    raise EngineError(f"kv_dtype must be one of {', '.join(KV_DTYPES)}, not {kv_dtype!r}.")
