"""What the model refuses and what it survives: bad ids, huge activations, damaged and 16-bit weights."""

import pytest
import torch

from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.errors import EngineError
from dsv4chat.runtime.model import Model
from tests.support.memory_source import CPU, MemorySource, feed, load, random_ids
from tests.support.random_models import random_model


@pytest.fixture(scope="module")
def model() -> Model:
    return load(random_model("pro", seed=21))


def test_ids_outside_the_vocabulary_are_refused_before_anything_changes(model: Model) -> None:
    cache = KVCache(model.config, "fp8", 50, CPU)
    for bad in ([160], [-1], [3, 160], [5, -7, 2]):
        with pytest.raises(EngineError, match="outside the model's vocabulary of 160"):
            model.forward(torch.tensor(bad), cache)
    for shape in (torch.zeros(0, dtype=torch.int64), torch.zeros(1, 2, dtype=torch.int64)):
        with pytest.raises(EngineError, match="at least one token id"):
            model.forward(shape, cache)
    assert cache.position == 0
    model.forward(torch.tensor([0, 159]), cache)


def test_last_logits_and_residual_are_those_of_the_last_token(model: Model) -> None:
    ids = random_ids(30, 160, 1)
    every = model.forward(ids, KVCache(model.config, "float32", 50, CPU), "all")
    last = model.forward(ids, KVCache(model.config, "float32", 50, CPU), "last")
    assert every.logits.shape == (30, 160)
    assert last.logits.shape == (1, 160)
    torch.testing.assert_close(last.logits[0], every.logits[-1])
    trace: list = []
    model.forward(ids, KVCache(model.config, "float32", 50, CPU), "last", trace)
    for layer in range(model.config.num_layers):
        assert trace[layer].streams.shape == (30, 4, 64)
        assert every.residual[layer] == trace[layer].streams[-1].abs().max()


def test_residuals_of_thousands_are_neither_clipped_nor_nan() -> None:
    """An embedding 5,000 times as large: the same relation to transformers, in 32 and in 16 bits."""
    theirs = random_model("flash", window=16, seed=22)
    with torch.no_grad():
        theirs.model.embed_tokens.weight[0] *= 5000
    ids = torch.tensor([0, *random_ids(140, 160, 2).tolist(), 0, 0])
    with torch.inference_mode():
        expected = theirs(ids[None]).logits[0]
    ours = load(theirs)
    for chunks in ([len(ids)], [1] * len(ids)):
        torch.testing.assert_close(feed(ours, ids, chunks), expected, rtol=0, atol=1e-4)
    cache = KVCache(ours.config, "fp8", 200, CPU)
    output = ours.forward(ids, cache)
    assert output.residual.min() > 1000
    assert torch.isfinite(output.logits).all()
    half = load(theirs, torch.bfloat16)
    for kv_dtype in ("float32", "bfloat16", "fp8"):
        assert torch.isfinite(feed(half, ids, [100, *[1] * 43], kv_dtype)).all()


def test_damaged_weights_give_nan_logits_and_no_crash() -> None:
    theirs = random_model("pro", window=16, seed=23)
    with torch.no_grad():
        theirs.model.embed_tokens.weight[5] = float("nan")
        theirs.model.embed_tokens.weight[6] = float("inf")
    ours = load(theirs)
    for bad in (5, 6):
        ids = random_ids(60, 160, 3)
        ids[30] = bad
        for chunks in ([60], [1] * 60):
            for kv_dtype in ("float32", "fp8"):
                logits = feed(ours, ids, chunks, kv_dtype)
                assert torch.isnan(logits[30:]).all()


def test_bfloat16_weights_lose_no_more_than_transformers_does() -> None:
    """Both sides with the same 16-bit weights, against 32-bit arithmetic on those weights."""
    theirs = random_model("pro", window=16, seed=24)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(parameter.to(torch.bfloat16))
    ids = random_ids(120, 160, 4)
    with torch.inference_mode():
        exact = theirs(ids[None]).logits[0].clone()
    ours = load(theirs, torch.bfloat16)
    assert ours.layers[0].moe.weights.gate_up.dtype == torch.bfloat16
    errors = [
        (feed(ours, ids, chunks, kv_dtype) - exact).abs().mean()
        for chunks in ([120], [60, *[1] * 60])
        for kv_dtype in ("float32", "bfloat16")
    ]
    with torch.inference_mode():
        reference = (theirs.to(torch.bfloat16)(ids[None]).logits[0].float() - exact).abs().mean()
    assert max(errors) < 1.1 * reference


def test_loading_reports_progress_and_refuses_other_types() -> None:
    source = MemorySource(random_model("pro", seed=25))
    calls: list[tuple[int, int, int, int]] = []
    Model.load(source, CPU, torch.float32, lambda *numbers: calls.append(numbers))
    done = [call[0] for call in calls]
    assert done == sorted(done)
    assert calls[-1] == (source.bytes_total, source.bytes_total, len(source.names()), len(source.names()))
    assert len(calls) >= len(source.names())
    with pytest.raises(EngineError, match="float32 or bfloat16"):
        Model.load(source, CPU, torch.float16)


@pytest.mark.parametrize("kv_dtype", ["float32", "bfloat16", "fp8"])
def test_the_special_step_for_one_token_equals_the_general_one(model: Model, kv_dtype: str) -> None:
    """Logits, |X| and everything in the cache, from the first token to past a heavily compressed block."""
    assert model.decoder is not None
    ids = random_ids(135, 160, 5)
    special, general = (KVCache(model.config, kv_dtype, 135, CPU) for _ in range(2))
    for token in ids:
        fast = model.forward(token[None], special)
        slow = model.forward(token[None], general, trace=[])
        torch.testing.assert_close(
            fast.logits, slow.logits, rtol=0, atol=1e-4 if kv_dtype == "float32" else 0.05
        )
        torch.testing.assert_close(
            fast.residual, slow.residual, rtol=1e-5 if kv_dtype == "float32" else 0.05, atol=0
        )
        assert fast.logits.shape == slow.logits.shape
    for one, other in zip(special.layers, general.layers, strict=True):
        assert (one.values - other.values).abs().mean() < 1e-3
        for rows, wanted in ((one.blocks, other.blocks), (one.keys, other.keys)):
            if rows is not None and wanted is not None:
                count = special.position // one.ratio
                assert (rows.load(count) - wanted.load(count)).abs().mean() < 1e-3
