"""Stored formats end to end: `transformers` made to round what its cache keeps, in float64 arithmetic."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from transformers import DeepseekV4ForCausalLM, DynamicCache
from transformers.cache_utils import DynamicSlidingWindowLayer
from transformers.models.deepseek_v4 import modeling_deepseek_v4 as reference

from dsv4chat.runtime.compare import TOLERANCE
from tests.kernels.test_kv_rows import exact_fp4, exact_fp8
from tests.support.memory_source import feed, load, random_chunks, random_ids
from tests.support.random_models import random_model


def _sylvester(d: int) -> np.ndarray:
    matrix = np.ones((1, 1))
    while len(matrix) < d:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix / np.sqrt(d)


class Rounding:
    """How `transformers` is made to round what its cache keeps."""

    def __init__(self, kv_dtype: str, rope_dim: int) -> None:
        self.kv_dtype, self.rope_dim = kv_dtype, rope_dim

    def rows(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows (..., d) of the window or of compressed blocks."""
        if self.kv_dtype == "bfloat16":
            return rows.to(torch.bfloat16).float()
        flat = rows.reshape(-1, rows.shape[-1]).float().numpy()
        return torch.from_numpy(exact_fp8(flat, self.rope_dim)).float().view(rows.shape)

    def keys(self, keys: torch.Tensor) -> torch.Tensor:
        """Index keys (..., d); queries are rounded with them in four bits only."""
        if self.kv_dtype == "bfloat16":
            return keys.to(torch.bfloat16).float()
        return self.rotated(keys)

    def rotated(self, rows: torch.Tensor) -> torch.Tensor:
        flat = rows.reshape(-1, rows.shape[-1]).double().numpy() @ _sylvester(rows.shape[-1])
        return torch.from_numpy(exact_fp4(flat)).float().view(rows.shape)


Install = Callable[[Rounding], None]


@pytest.fixture
def rounded_reference(monkeypatch: pytest.MonkeyPatch) -> Install:
    """A function that makes `transformers` round; undone after the test."""

    def install(rounding: Rounding) -> None:
        window_update = DynamicSlidingWindowLayer.update
        compressed_update = reference.DeepseekV4HCACache.update
        append = reference.DeepseekV4HCACache.update_compressor_states
        score = reference.DeepseekV4IndexerScorer.forward

        def update_window(self, keys, values, *rest, **more):  # type: ignore[no-untyped-def]
            keys = rounding.rows(keys)
            return window_update(self, keys, keys, *rest, **more)

        def update(self, keys, values, *rest, **more):  # type: ignore[no-untyped-def]
            keys = rounding.rows(keys)
            return compressed_update(self, keys, keys, *rest, **more)

        def update_compressor_states(self, name, compressed):  # type: ignore[no-untyped-def]
            if compressed.shape[1]:
                compressed = (rounding.keys if name == "indexer" else rounding.rows)(compressed)
            return append(self, name, compressed)

        def forward(self, query, keys, hidden):  # type: ignore[no-untyped-def]
            if rounding.kv_dtype == "fp8":
                query = rounding.rotated(query)
            return score(self, query, keys, hidden)

        monkeypatch.setattr(DynamicSlidingWindowLayer, "update", update_window)
        monkeypatch.setattr(reference.DeepseekV4HCACache, "update", update)
        monkeypatch.setattr(
            reference.DeepseekV4HCACache, "update_compressor_states", update_compressor_states
        )
        monkeypatch.setattr(reference.DeepseekV4IndexerScorer, "forward", forward)

    return install


def _reference_logits(model: DeepseekV4ForCausalLM, ids: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        cache = DynamicCache(config=model.config)
        return model(ids[None], cache=cache, use_cache=True).logits[0].clone()


@pytest.mark.parametrize("kv_dtype", ["bfloat16", "fp8"])
@pytest.mark.parametrize("pattern", ["pro", "flash"])
def test_logits_equal_transformers_with_the_same_rounding(
    rounded_reference: Install, pattern: str, kv_dtype: str
) -> None:
    """A value next to a rounding boundary may fall to either side: rare, and little beside the rounding.
    Which do depends on the processor, and what comes after one is a little off: so positions are counted too
    (0.5 to 1 of them are equal, with the other format's rounding none).
    """
    shares: list[float] = []
    within: list[float] = []
    models = [random_model(pattern, window=16, seed=seed) for seed in (31, 32)]
    prompts = [random_ids(length, 160, length) for length in (140, 33)]
    unrounded = [[_reference_logits(model, ids) for ids in prompts] for model in models]
    rounded_reference(Rounding(kv_dtype, 8))
    for theirs, plain in zip(models, unrounded, strict=True):
        ours = load(theirs)
        for ids, without in zip(prompts, plain, strict=True):
            length = len(ids)
            expected = _reference_logits(theirs, ids)
            effect = (expected - without).abs().mean()
            assert effect > 2 * TOLERANCE
            for chunks in ([length], random_chunks(length, 30, length), [1] * length):
                difference = (feed(ours, ids, chunks, kv_dtype) - expected).abs()
                shares.append(float(difference.mean() / effect))
                within.append(float((difference <= TOLERANCE).all(-1).float().mean()))
    positions = sum(within) / len(within)
    print(
        f"{positions:.2f} of the positions within {TOLERANCE}; share of the effect at most {max(shares):.3f}"
    )
    assert max(shares) < 0.2
    assert sum(shares) / len(shares) < 0.03
    assert positions > 0.4
    # Nearly every long run meets a boundary.
    assert sum(share == 1 for share in within) >= 0.2 * len(within)
