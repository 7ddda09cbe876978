"""Engines over small random models."""

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from dsv4chat.runtime import SamplingParams
from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.engine import Engine
from dsv4chat.runtime.model import Output
from tests.support.random_models import random_model
from tests.support.saved_models import save
from tests.support.small_tokenizer import VOCAB_SIZE, write_tokenizer

GREEDY = SamplingParams(temperature=0, max_tokens=12, ignore_eos=True)


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


def random_ids(seed: int, count: int, vocab: int = 160) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(vocab) for _ in range(count)]


def ids_of(tokens: Iterable[Any]) -> list[int]:
    return [token.id for token in tokens]


def cold(engine: Engine, ids: Sequence[int], params: SamplingParams = GREEDY, **options: Any) -> list[int]:
    """What a conversation that has never been used generates."""
    tokens = ids_of(engine.generate(ids, params, conversation="cold", **options))
    engine.drop("cold")
    return tokens


def favour(engine: Engine, monkeypatch: pytest.MonkeyPatch, token: int, after: int = 0) -> None:
    """Let the model give `token` by far the highest logit, once it holds `after` ids."""
    forward = engine.model.forward

    def favouring(ids: Any, cache: Any, logits: Any = "last", trace: Any = None) -> Output:
        output = forward(ids, cache, logits, trace)
        if cache.position <= after:
            return output
        other = output.logits.clone()
        other[:, token] = 1000.0
        return Output(other, output.residual)

    monkeypatch.setattr(engine.model, "forward", favouring)


def stopping_at(folder: Path, tmp_path: Path, token: int) -> Engine:
    """The same weights, whose end token is `token`, without a tokenizer."""
    for file in folder.iterdir():
        if file.name != "tokenizer.json":
            (tmp_path / file.name).symlink_to(file)
    config = json.loads((folder / "config.json").read_text())
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").write_text(json.dumps(config | {"eos_token_id": token}))
    return Engine.load(tmp_path, max_context=512)
