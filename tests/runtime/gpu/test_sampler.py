"""The sampler on the device against the one on the host: same logits, same token."""

import pytest
import torch

from dsv4chat.runtime import philox
from dsv4chat.runtime.errors import SamplingError
from dsv4chat.runtime.gpu import sampler
from dsv4chat.runtime.gpu.draws import uniforms
from dsv4chat.runtime.gpu.state import StepState
from dsv4chat.runtime.protocol import SamplingParams
from dsv4chat.runtime.sampler import sample

CPU = torch.device("cpu")
VOCAB = 300


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**32 - 1, 2**63 + 12345, 2**64 - 1])
@pytest.mark.parametrize("first", [0, 1024, 2**32 - 3])
def test_draws_are_those_of_philox(seed: int, first: int) -> None:
    expected = [philox.uniform(seed, step) for step in range(first, first + 40)]
    assert uniforms(seed, first, 40, CPU).tolist() == expected


def logits_of(seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(VOCAB, generator=generator) * (1 + seed % 7)
    if seed % 3 == 0:
        logits = logits.round()  # ties
    if seed % 5 == 0:
        logits[torch.randint(VOCAB, (100,), generator=generator)] = -torch.inf
    return logits


def params_of(seed: int) -> SamplingParams:
    """Every cut alone and together, each with and without the others."""
    return SamplingParams(
        temperature=(0, 0.3, 1, 2.5)[seed % 4],
        top_k=(0, 1, 5, 40, VOCAB, 10 * VOCAB)[seed // 4 % 6],
        top_p=(1, 0.2, 0.9, 0.999)[seed // 24 % 4],
        min_p=(0, 0.05, 0.9)[seed // 96 % 3],
        repetition_penalty=(1, 1.3, 0.7)[seed % 3],
        penalty_window=(0, 3, 256)[seed // 2 % 3],
        seed=seed * 7919,
    )


@pytest.mark.parametrize("block", range(4))
def test_the_same_logits_give_the_same_token(block: int) -> None:
    for seed in range(72 * block, 72 * (block + 1)):
        params, logits = params_of(seed), logits_of(seed)
        ids = torch.randint(VOCAB, (20,), generator=torch.Generator().manual_seed(seed)).tolist()
        number = seed % 1500
        state = StepState(VOCAB, 64, CPU)
        state.begin(ids, params, (), number)
        state.refill(number)
        chosen, outcome, report = sampler.choose(logits, state, sampler.kind_of(params))
        expected = sample(logits, ids, params, number, alternatives=sampler.ALTERNATIVES)
        assert int(chosen) == expected.id, (seed, params)
        assert int(outcome) == sampler.CHOSEN
        assert float(report[0]) == pytest.approx(expected.logprob, abs=1e-12)
        own = [int(token) for token in report[1 : 1 + len(expected.alternatives)]]
        assert own == [token for token, _ in expected.alternatives]


def test_the_penalty_counts_the_last_ids_as_they_come_and_go() -> None:
    params = SamplingParams(temperature=0, repetition_penalty=1.5, penalty_window=5, seed=0)
    ids = [3, 3, 7, 9, 3, 11, 12]
    state = StepState(VOCAB, 64, CPU)
    state.begin(ids, params, ())
    for token in (7, 7, 200, 3, 4, 5, 6, 7, 8):
        window = ids[-5:]
        assert {i for i, count in enumerate(state.counts.tolist()) if count} == set(window)
        assert int(state.counts.sum()) == len(window)
        state.advance(torch.tensor([token]), torch.tensor([True]))
        ids.append(token)


@pytest.mark.parametrize(
    ("logits", "outcome"),
    [
        (torch.tensor([0.0, torch.nan, 1.0]), sampler.NOT_A_NUMBER),
        (torch.tensor([0.0, torch.inf, 1.0]), sampler.INFINITE),
        (torch.full((3,), -torch.inf), sampler.NOTHING),
    ],
)
@pytest.mark.parametrize("temperature", [0, 1])
def test_logits_without_a_choice_are_told_and_give_a_valid_id(
    logits: torch.Tensor, outcome: int, temperature: float
) -> None:
    params = SamplingParams(temperature=temperature, seed=1)
    with pytest.raises(SamplingError):
        sample(logits, [0], params, 0)
    state = StepState(3, 8, CPU)
    state.begin([0], params, ())
    state.refill(0)
    chosen, told, _ = sampler.choose(logits, state, sampler.kind_of(params))
    assert int(told) == outcome
    assert 0 <= int(chosen) < 3


def test_a_step_after_the_end_changes_nothing() -> None:
    state = StepState(VOCAB, 64, CPU)
    state.begin([1, 2, 3], SamplingParams(temperature=0, seed=1), {5})
    state.advance(torch.tensor([5]), torch.tensor([False]))
    before = {name: value.clone() for name, value in vars(state).items() if isinstance(value, torch.Tensor)}
    assert not bool(state.alive)
    state.advance(torch.tensor([9]), torch.tensor([True]))
    for name, value in before.items():
        if name != "history":  # past the end, where the next token will stand
            assert torch.equal(vars(state)[name], value), name
