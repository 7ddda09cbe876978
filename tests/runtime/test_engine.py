"""The engine: its logits, greedy tokens and their figures against transformers."""

import pytest
import torch

from dsv4chat.runtime import (
    Engine,
    SamplingParams,
)
from tests.support.engines import GREEDY, cold, ids_of, random_ids
from tests.support.random_models import random_model


@pytest.fixture(scope="module", params=["pro", "flash"])
def oracle(request):
    return random_model(request.param, seed=3)


@pytest.fixture(scope="module")
def exact(oracle, tmp_path_factory):
    """The oracle's own save_pretrained folder, everything in float32."""
    folder = tmp_path_factory.mktemp("exact")
    oracle.save_pretrained(folder)
    return Engine.load(folder, device="cpu", dtype="float32", kv_dtype="float32", max_context=1024)


@pytest.mark.parametrize("length", [1, 4, 17, 130])
def test_logits_equal_transformers(oracle, exact, length):
    ids = random_ids(length, length)
    with torch.no_grad():
        expected = oracle(torch.tensor([ids])).logits[0]
    ours = exact.logits(ids)
    assert ours.dtype == torch.float32
    assert ours.shape == (length, 160)
    assert (ours - expected).abs().max() <= 1e-4


@pytest.mark.parametrize("chunk", [1, 7, [1, 3, 100, 26], [129, 1]])
def test_logits_are_the_same_for_every_chunking(exact, chunk):
    ids = random_ids(5, 130)
    assert (exact.logits(ids, chunk) - exact.logits(ids)).abs().max() <= 1e-4


def test_greedy_tokens_and_their_figures_equal_transformers(oracle, exact):
    ids = random_ids(6, 60)
    tokens = list(exact.generate(ids, SamplingParams(temperature=0, max_tokens=40, ignore_eos=True)))
    sequence = ids + ids_of(tokens)
    largest = []
    hooks = [
        layer.register_forward_hook(
            lambda _, __, out: largest.append((out[0] if isinstance(out, tuple) else out)[0])
        )
        for layer in oracle.model.layers
    ]
    with torch.no_grad():
        logits = oracle(torch.tensor([sequence])).logits[0]
    for hook in hooks:
        hook.remove()
    own = torch.log_softmax(logits.double(), -1)
    for step, token in enumerate(tokens):
        position = len(ids) - 1 + step
        row = logits[position]
        # A differing choice is allowed only where the oracle itself is undecided.
        assert row[token.id] >= row.max() - 1e-4, f"step {step}"
        assert token.logprob == pytest.approx(own[position, token.id].item(), abs=1e-4)
        expected = [streams[position].abs().max().item() for streams in largest]
        assert token.residual == pytest.approx(expected, rel=1e-4)


def test_any_chunking_gives_the_same_greedy_continuation(exact):
    """Probe 2. Boundaries cut the prefill; a warm conversation fed token by token cuts it everywhere."""
    ids = random_ids(7, 150)
    whole = cold(exact, ids)
    assert cold(exact, ids, boundaries=[1, 2, 50, 128, 149]) == whole
    for end in range(1, len(ids)):
        list(exact.generate(ids[:end], SamplingParams(max_tokens=0), conversation="by token"))
    assert ids_of(exact.generate(ids, GREEDY, conversation="by token")) == whole
    assert exact.last_turn.prefilled == 1
