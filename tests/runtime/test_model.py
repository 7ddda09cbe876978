"""The model against `transformers` in float32: every length, every chunking, 300 greedy tokens."""

import pytest
import torch

from dsv4chat.runtime.compare import TOLERANCE
from tests.support.memory_source import random_chunks, random_ids
from tests.support.oracle import Oracle, assert_few_excused

LENGTHS = (
    *range(1, 10),
    *range(15, 18),
    *range(127, 131),
    *range(255, 258),
    *range(383, 386),
    *range(511, 514),
    600,
)
CASES = [(pattern, window) for pattern in ("pro", "flash") for window in (16, 128)]


def _lengths(oracle: Oracle, seed: int, longest_chunks: tuple[int, ...]) -> float:
    """Each length with its own reference run, whole and in random chunks up to each of `longest_chunks`."""
    worst = 0.0
    for length in LENGTHS:
        ids = random_ids(length, oracle.vocab_size, seed + length)
        expected = oracle.expect(ids)
        chunkings = [[length], *(random_chunks(length, longest, seed) for longest in longest_chunks)]
        worst = max([worst, *(oracle.check(ids, chunks, expected) for chunks in chunkings)])
    return worst


@pytest.mark.parametrize(("pattern", "window"), CASES)
def test_logits_equal_transformers_for_every_length_and_chunking(pattern: str, window: int) -> None:
    oracle = Oracle(pattern, window, seed=1)
    assert oracle.model.config.index_heads >= 32
    worst = _lengths(oracle, 10, (60 if window == 16 else 200,))
    assert 0 < worst <= TOLERANCE
    assert_few_excused([oracle])


@pytest.mark.parametrize(("pattern", "window"), CASES)
def test_token_by_token_equals_prefill(pattern: str, window: int) -> None:
    oracle = Oracle(pattern, window, seed=2)
    ids = random_ids(400, oracle.vocab_size, 3)
    expected = oracle.expect(ids)
    for chunks in ([1] * 400, [130, *[1] * 270], [1] * 127 + [2, 271], [7] * 57 + [1]):
        oracle.check(ids, chunks, expected)
    assert_few_excused([oracle])


def test_the_indexer_has_to_choose_and_the_clamp_to_cut() -> None:
    oracle = Oracle("pro", 16, seed=3)
    ids = random_ids(100, oracle.vocab_size, 4)
    expected = oracle.expect(ids)
    config = oracle.model.config
    for layer, trace in enumerate(expected.layers):
        if config.layer_kind(layer) == "csa":
            (choice,) = trace.blocks
            # 25 blocks visible at the end, five chosen, and not always the same.
            assert (choice.chosen[-1] >= 0).sum() == config.index_topk < choice.scores.shape[1] == 25
            assert len({tuple(sorted(row.tolist())) for row in choice.chosen[-20:]}) > 5
    experts = oracle.reference.model.model.layers[2].mlp.shared_experts
    with torch.inference_mode():
        gate = experts.gate_proj(torch.randn(50, config.hidden_size))
    assert (gate > config.swiglu_limit).any()


@pytest.mark.parametrize(("pattern", "window"), [("pro", 16), ("flash", 128)])
def test_three_hundred_greedy_tokens_are_identical(pattern: str, window: int) -> None:
    oracle = Oracle(pattern, window, seed=4)
    oracle.check_greedy(random_ids(37, oracle.vocab_size, 5), 300)
    assert not oracle.excused


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_soak_lengths_chunkings_and_greedy_runs() -> None:
    """All lengths in three chunkings on 12 models, token by token and 300 greedy tokens on each."""
    oracles = []
    worst = greedy = 0.0
    for pattern, window in CASES:
        for seed in (11, 12, 13):
            oracle = Oracle(pattern, window, seed)
            worst = max(worst, _lengths(oracle, 1000 * seed, (10, 40, 200)))
            ids = random_ids(600, oracle.vocab_size, seed)
            worst = max(worst, oracle.check(ids, [1] * 600, oracle.expect(ids)))
            for length in (1, 16, 128, 257):
                prompt = random_ids(length, oracle.vocab_size, seed + length)
                greedy = max(greedy, oracle.check_greedy(prompt, 300))
            oracles.append(oracle)
    print(f"largest logit difference {worst:.2e} (greedy {greedy:.2e}) of at most {TOLERANCE:.0e}")
    assert_few_excused(oracles)
