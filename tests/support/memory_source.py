"""A `transformers` model's weights as a checkpoint that needs no files."""

import torch
from transformers import DeepseekV4ForCausalLM

from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.model import Model
from tests.support.model_names import native_views

CPU = torch.device("cpu")


class MemorySource:
    """Reads the parameters themselves; what `Model.load` makes of them are copies."""

    def __init__(self, model: DeepseekV4ForCausalLM) -> None:
        self.config = ModelConfig.from_dict(model.config.to_dict())
        self.tensors = native_views(model)
        self.bytes_total = sum(tensor.nbytes for tensor in self.tensors.values())

    def names(self) -> list[str]:
        return list(self.tensors)

    def read(self, name: str) -> torch.Tensor:
        return self.tensors[name]


def load(model: DeepseekV4ForCausalLM, dtype: torch.dtype = torch.float32) -> Model:
    """The runtime's model with the same weights."""
    return Model.load(MemorySource(model), CPU, dtype)


def feed(
    model: Model,
    ids: torch.Tensor,
    chunks: list[int],
    kv_dtype: str = "float32",
    cache: KVCache | None = None,
) -> torch.Tensor:
    """Logits (n, vocab) of ids (n,) fed in chunks, to a fresh cache unless one is given."""
    if cache is None:
        cache = KVCache(model.config, kv_dtype, ids.shape[0], CPU)
    return torch.cat([model.forward(piece, cache, "all").logits for piece in torch.split(ids, chunks)])


def random_ids(length: int, vocab_size: int, seed: int) -> torch.Tensor:
    return torch.randint(0, vocab_size, (length,), generator=torch.Generator().manual_seed(seed))


def random_chunks(length: int, longest: int, seed: int) -> list[int]:
    """Sizes from 1 to `longest` that add up to `length`."""
    generator = torch.Generator().manual_seed(seed)
    chunks: list[int] = []
    while (left := length - sum(chunks)) > 0:
        chunks.append(min(left, int(torch.randint(1, longest + 1, (1,), generator=generator))))
    return chunks
