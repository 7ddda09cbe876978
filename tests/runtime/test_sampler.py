"""The sampler against published vectors, float64 arithmetic written out in plain Python, and chi-square."""

import math
from collections import Counter

import pytest
import torch

from dsv4chat.runtime.errors import SamplingError
from dsv4chat.runtime.philox import philox4x32, uniform
from dsv4chat.runtime.protocol import SamplingParams
from dsv4chat.runtime.sampler import check_params, distribution, penalise, sample, with_seed

LOGITS = [1.5, -0.25, 3.0, 0.0, 2.25, -4.0, 3.0, 0.75]


def row(values=LOGITS):
    return torch.tensor(values, dtype=torch.float32)


def expected(values, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0):
    """The rules in plain Python: a list of probabilities by id."""
    scaled = [value / temperature for value in values]
    weights = [math.exp(value - max(scaled)) for value in scaled]
    total = math.fsum(weights)
    order = sorted(range(len(values)), key=lambda token: (-weights[token], token))
    if top_k:
        order = order[:top_k]
    if top_p < 1:
        total = math.fsum(weights[token] for token in order)
        kept, reached = [], 0.0
        for token in order:
            if reached >= top_p * total:
                break
            kept.append(token)
            reached += weights[token]
        order = kept
    order = [token for token in order if weights[token] >= min_p * weights[order[0]]]
    total = math.fsum(weights[token] for token in order)
    return [weights[token] / total if token in order else 0.0 for token in range(len(values))]


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        # The known answers that come with Random123 (kat_vectors, philox4x32 10).
        ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_the_generator_gives_the_published_words(counter, key, words):
    assert philox4x32(counter, key) == words


def test_draws_are_uniform_and_depend_on_seed_and_step_alone():
    draws = [uniform(7, step) for step in range(20_000)]
    assert all(0 <= draw < 1 for draw in draws)
    counts = Counter(int(draw * 50) for draw in draws)
    statistic = sum((counts[cell] - 400) ** 2 / 400 for cell in range(50))
    assert statistic < 85.4  # chi-square, 49 degrees of freedom, p = 0.001
    assert draws[123] == uniform(7, 123)
    assert uniform(7, 0) != uniform(8, 0)
    assert uniform(2**64 - 1, 2**40) != uniform(2**64 - 1, 2**40 + 1)


@pytest.mark.parametrize(
    "cuts",
    [
        {},
        {"temperature": 0.6},
        {"temperature": 1.8},
        {"top_k": 1},
        {"top_k": 3},
        {"top_k": 100},
        {"top_p": 0.7},
        {"top_p": 1e-9},
        {"top_p": 0.999999},
        {"min_p": 0.2},
        {"min_p": 1.0},
        {"temperature": 0.7, "top_k": 5, "top_p": 0.8, "min_p": 0.05},
    ],
)
def test_the_distribution_follows_the_rules(cuts):
    params = SamplingParams(**cuts)
    ours = distribution(row().double(), params).tolist()
    assert ours == pytest.approx(expected(LOGITS, **cuts), abs=1e-15)
    assert math.fsum(ours) == pytest.approx(1, abs=1e-14)


def test_cuts_are_taken_in_the_stated_order():
    # After top-k 2 the rest is (.6, .4): top-p .5 keeps one of them. Before it, .3 alone would not reach .5.
    values = [math.log(p) for p in (0.3, 0.2, 0.19, 0.16, 0.15)]
    params = SamplingParams(top_k=2, top_p=0.5)
    assert distribution(row(values).double(), params).nonzero().flatten().tolist() == [0]
    # min-p looks at the tempered distribution: at temperature 2 the ratio .15/.3 becomes sqrt(.5) = .707.
    assert (distribution(row(values).double(), SamplingParams(temperature=2.0, min_p=0.7)) > 0).all()
    assert (distribution(row(values).double(), SamplingParams(min_p=0.7)) > 0).sum() == 1


@pytest.mark.parametrize("cuts", [{"top_p": 0.05}, {"top_p": 0.99}, {"top_k": 900, "top_p": 0.9}])
def test_a_large_vocabulary_is_cut_by_the_same_rules(cuts):
    generator = torch.Generator().manual_seed(8)
    values = torch.randn(4000, generator=generator).mul(4).round().div(4)  # with many equals
    ours = distribution(values.double(), SamplingParams(**cuts)).tolist()
    assert ours == pytest.approx(expected(values.tolist(), **cuts), abs=1e-15)


def test_equals_at_the_cut_go_to_the_lowest_ids():
    equal = torch.zeros(6, dtype=torch.float64)
    kept = distribution(equal, SamplingParams(top_k=3)).nonzero().flatten().tolist()
    assert kept == [0, 1, 2]
    kept = distribution(equal, SamplingParams(top_p=0.5)).nonzero().flatten().tolist()
    assert kept == [0, 1, 2]


def test_a_sum_that_reaches_top_p_exactly_is_enough():
    values = torch.tensor([math.log(0.5), math.log(0.25), math.log(0.25)], dtype=torch.float64)
    assert (distribution(values, SamplingParams(top_p=0.5)) > 0).tolist() == [True, False, False]


@pytest.mark.parametrize("cuts", [{}, {"temperature": 0.5, "top_p": 0.9}, {"top_k": 4, "min_p": 0.1}])
def test_draws_follow_the_distribution(cuts):
    params = SamplingParams(seed=1234, **cuts)
    probabilities = expected(LOGITS, **cuts)
    drawn = 6000
    counts = Counter(sample(row(), [], params, step).id for step in range(drawn))
    possible = [token for token, p in enumerate(probabilities) if p > 0]
    assert set(counts) <= set(possible)
    statistic = sum(
        (counts[t] - drawn * probabilities[t]) ** 2 / (drawn * probabilities[t]) for t in possible
    )
    limits = {1: 10.83, 2: 13.82, 3: 16.27, 4: 18.47, 5: 20.52, 6: 22.46, 7: 24.32}  # p = 0.001
    assert statistic < limits[len(possible) - 1]


def test_a_large_vocabulary_is_drawn_from_evenly():
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(5000, generator=generator)
    params = SamplingParams(seed=99)
    probabilities = torch.softmax(logits.double(), 0)
    edges = (probabilities.cumsum(0) * 20).long().clamp(max=19)  # twenty runs of ids of about equal weight
    weights = torch.zeros(20, dtype=torch.float64).index_add(0, edges, probabilities)
    counts = Counter(int(edges[sample(logits, [], params, step).id]) for step in range(2000))
    statistic = sum((counts[cell] - 2000 * p) ** 2 / (2000 * p) for cell, p in enumerate(weights.tolist()))
    assert statistic < 43.8  # 19 degrees of freedom, p = 0.001


def test_the_same_seed_and_step_choose_the_same_token_whatever_came_before():
    params = SamplingParams(seed=5)
    first = [sample(row(), [], params, step).id for step in range(50)]
    assert [sample(row(), [], params, step).id for step in reversed(range(50))] == first[::-1]
    assert first != [sample(row(), [], SamplingParams(seed=6), step).id for step in range(50)]


def test_no_seed_means_a_fresh_one():
    seeds = {with_seed(SamplingParams()).seed for _ in range(8)}
    assert len(seeds) == 8
    assert with_seed(SamplingParams(seed=3, top_k=2)) == SamplingParams(seed=3, top_k=2)
    assert with_seed(SamplingParams(top_k=2, temperature=0.5)).top_k == 2


def test_greedy_takes_the_lowest_of_equals():
    assert sample(row(), [], SamplingParams(temperature=0), 0).id == 2
    assert sample(torch.zeros(100_000), [], SamplingParams(temperature=0.0), 0).id == 0


def test_a_tiny_temperature_neither_overflows_nor_chooses_another_token():
    params = SamplingParams(temperature=1e-300, seed=0)
    assert {sample(row([1.0, 5e4, -5e4, 4.9e4]), [], params, step).id for step in range(20)} == {1}


def test_the_penalty_divides_positive_and_multiplies_other_logits_once_per_id():
    params = SamplingParams(repetition_penalty=2.0)
    ours = penalise(row().double(), [2, 2, 2, 1, 3], params).tolist()
    assert ours == [1.5, -0.5, 1.5, 0.0, 2.25, -4.0, 3.0, 0.75]


def test_the_penalty_sees_only_the_last_tokens():
    params = SamplingParams(repetition_penalty=2.0, penalty_window=2)
    assert penalise(row().double(), [2, 4, 0], params).tolist()[2] == 3.0
    assert penalise(row().double(), [2, 4, 0], params).tolist()[4] == 1.125
    none = SamplingParams(repetition_penalty=2.0, penalty_window=0)
    assert penalise(row().double(), [2, 4, 0], none).tolist() == row().double().tolist()


def test_greedy_is_the_maximum_of_the_penalised_logits():
    params = SamplingParams(temperature=0, repetition_penalty=1.5)
    assert sample(row(), [2], params, 0).id == 6
    assert sample(row(), [2, 6], params, 0).id == 4


def test_the_log_probability_is_the_models_own():
    values = [math.exp(value) for value in LOGITS]
    for params in (
        SamplingParams(temperature=0, repetition_penalty=3.0),
        SamplingParams(temperature=0.3, top_k=2, min_p=0.3, seed=1),
    ):
        choice = sample(row(), [2, 6, 4], params, 0)
        assert choice.logprob == pytest.approx(math.log(values[choice.id] / math.fsum(values)), abs=1e-12)


def test_alternatives_are_the_most_probable_in_order():
    choice = sample(row(), [], SamplingParams(temperature=0), 0, alternatives=4)
    assert [token for token, _ in choice.alternatives] == [2, 6, 4, 0]
    total = math.log(math.fsum(math.exp(value) for value in LOGITS))
    assert [value for _, value in choice.alternatives] == pytest.approx(
        [LOGITS[t] - total for t in (2, 6, 4, 0)]
    )
    assert len(sample(row(), [], SamplingParams(temperature=0), 0, alternatives=50).alternatives) == 8
    assert sample(row(), [], SamplingParams(temperature=0), 0).alternatives == ()


def test_rows_without_a_token_are_never_chosen():
    values = [0.0, 1.0, 50.0, 60.0]
    assert sample(row(values), [], SamplingParams(temperature=0), 0, vocab_limit=2).id == 1
    params = SamplingParams(seed=4, temperature=5.0)
    choices = [sample(row(values), [], params, step, vocab_limit=2, alternatives=9) for step in range(200)]
    assert {choice.id for choice in choices} == {0, 1}
    assert all(len(choice.alternatives) == 2 for choice in choices)
    assert choices[0].logprob > -2


def test_an_id_with_no_probability_is_never_drawn():
    values = [-math.inf, 0.0, -math.inf, 0.0, -math.inf]
    params = SamplingParams(seed=11)
    assert {sample(row(values), [], params, step).id for step in range(300)} == {1, 3}


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(
    ("values", "word"),
    [
        ([1.0, math.nan, 2.0], "not a number"),
        ([math.nan] * 3, "not a number"),
        ([-math.inf] * 3, "all -inf"),
        ([0.0, math.inf, 0.0], "infinite"),
    ],
)
def test_logits_that_cannot_be_sampled_raise(values, word, temperature):
    with pytest.raises(SamplingError, match=word):
        sample(row(values), [], SamplingParams(temperature=temperature, seed=1), 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("temperature", "hot"),
        ("top_p", 0.0),
        ("top_p", 1.5),
        ("top_p", math.nan),
        ("top_k", -1),
        ("top_k", 1.5),
        ("min_p", -0.1),
        ("min_p", 1.1),
        ("repetition_penalty", 0.0),
        ("repetition_penalty", -2.0),
        ("repetition_penalty", math.inf),
        ("penalty_window", -1),
        ("seed", -1),
        ("seed", 2**64),
        ("max_tokens", -1),
        ("max_tokens", 2.5),
    ],
)
def test_parameters_out_of_range_are_named(name, value):
    with pytest.raises(SamplingError, match=f"{name} is .* must be"):
        check_params(SamplingParams(**{name: value}))


def test_parameters_at_the_edge_are_accepted():
    check_params(SamplingParams())
    check_params(
        SamplingParams(temperature=0, top_p=1e-6, min_p=1, seed=2**64 - 1, max_tokens=0, penalty_window=0)
    )
