"""The key-value cache of one conversation, and the small state that is needed to go back in it.

Each layer holds the window ring (the last `window` rows of kv, slot = position mod window). A compressed
layer also holds its compressed rows, one for `ratio` tokens, and the rows of the block that is still
open; a CSA layer holds the same once more for the indexer's keys. Everything is a function of `position`:
how many slots, blocks and open rows are valid, so that going back is putting the small state back and
setting the position.

Compressed rows and keys are append-only and grow geometrically up to what `max_context` needs.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4chat.kernels.kv_rows import Fp4Keys, Fp8Rows, PlainRows, Rows
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.errors import ContextOverflowError, EngineError
from dsv4chat.runtime.layer_cache import LayerCache

KV_DTYPES = ("float32", "bfloat16", "fp8")


@dataclass(frozen=True)
class CacheMark:
    """The state of a cache at `position` that cannot be rewound: rings and open blocks, copied.

    nbytes: the memory the copies take. cache and returns say which cache it belongs to, and how often
    that had gone back when the mark was taken.
    """

    position: int
    rings: tuple[Tensor, ...]
    open_blocks: tuple[list[Tensor], ...]
    nbytes: int
    cache: object
    returns: int


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
        self._identity = object()
        self._returned_to: list[int] = []  # every position gone back to, in order
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
        self._go_back(0)

    def checkpoint(self) -> CacheMark:
        """Copies of the state that a later step overwrites, to return to this position."""
        if self._busy:
            raise EngineError("A step on this cache was interrupted; restore a mark or clear it first.")
        position = self._position
        rings = tuple(layer.ring[: min(position, layer.size)].clone() for layer in self.layers)
        blocks = tuple(block.save(position) for layer in self.layers for block in layer.open_blocks())
        nbytes = sum(t.nbytes for t in rings) + sum(t.nbytes for saved in blocks for t in saved)
        return CacheMark(position, rings, blocks, nbytes, self._identity, len(self._returned_to))

    def restore(self, mark: CacheMark) -> None:
        """Go back to `mark`, which must lie on the way to the present position.

        Raises EngineError for a mark of another cache, of a later position, or of a continuation that was
        abandoned by going back before it: the rows it relies on are not there.
        """
        if mark.cache is not self._identity:
            raise EngineError("This mark belongs to another cache; feed the tokens again.")
        if mark.position > self._position or any(
            p < mark.position for p in self._returned_to[mark.returns :]
        ):
            raise EngineError(
                f"The cache no longer holds the {mark.position} tokens of this mark; feed them again."
            )
        saved = iter(mark.open_blocks)
        for layer, ring in zip(self.layers, mark.rings, strict=True):
            layer.ring[: ring.shape[0]] = ring
            if layer.values is not layer.ring:
                layer.values[: ring.shape[0]] = layer.rows.load(ring)
            for block in layer.open_blocks():
                block.load(next(saved))
        self._go_back(mark.position)

    def _go_back(self, position: int) -> None:
        self._returned_to.append(position)
        self._position = position
        self._busy = False


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
