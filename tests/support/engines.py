"""Engines over small random models."""

from pathlib import Path

import torch

from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.engine import Engine
from tests.support.random_models import random_model
from tests.support.saved_models import save
from tests.support.small_tokenizer import VOCAB_SIZE, write_tokenizer


def save_random(
    folder: Path, pattern: str = "pro", *, text: bool = False, fmt: str = "bf16", **config
) -> Path:
    """A saved random model; text: with a tokenizer, its vocabulary and three rows more."""
    if text:
        config["vocab_size"] = VOCAB_SIZE + 3
    save(random_model(pattern, **config), folder, fmt=fmt)
    if text:
        write_tokenizer(folder)
    return folder


def cold_logits(engine: Engine, ids: list[int], chunks: list[int]) -> torch.Tensor:
    """The logits (vocab,) after `ids`, fed to a new cache in `chunks`, without a session."""
    cache = KVCache(engine.config, engine.info.kv_dtype, engine.info.max_context, engine.model.device)
    position = 0
    for size in chunks:
        output = engine.model.forward(torch.tensor(ids[position : position + size]), cache, "last")
        position += size
    assert position == len(ids)
    return output.logits[-1]
