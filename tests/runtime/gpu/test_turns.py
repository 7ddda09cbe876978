"""Whole turns whose tokens the step chooses itself, held against turns through the model and the sampler."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
import torch

from dsv4chat.runtime.engine import Engine
from dsv4chat.runtime.errors import SamplingError
from dsv4chat.runtime.generation import Token
from dsv4chat.runtime.gpu.step import DecodeStep
from dsv4chat.runtime.protocol import SamplingParams
from tests.support.engines import save_random
from tests.support.memory_source import random_ids

PARAMS = {
    "greedy": SamplingParams(temperature=0, seed=1),
    "draw": SamplingParams(temperature=1.3, seed=2),
    "penalised": SamplingParams(temperature=0, seed=3, repetition_penalty=1.7, penalty_window=9),
    "cut": SamplingParams(temperature=1.5, seed=4, top_k=20, top_p=0.8, min_p=0.02, repetition_penalty=0.8),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_random(tmp_path_factory.mktemp("turns") / "model")


@pytest.fixture(scope="module")
def plain(folder: Path) -> Engine:
    return Engine.load(folder, device="cpu", kv_dtype="float32", max_context=600)


@pytest.fixture
def stepping(folder: Path) -> Engine:
    engine = Engine.load(folder, device="cpu", kv_dtype="float32", max_context=600)
    engine.model.decode_step = DecodeStep(engine.model)
    return engine


def turn(engine: Engine, ids: list[int], params: SamplingParams, count: int, name: str = "a") -> list[Token]:
    params = params_for(params, count)
    return list(engine.generate(ids, params, conversation=name, alternatives=3))


def params_for(params: SamplingParams, count: int) -> SamplingParams:
    fields = {name: getattr(params, name) for name in params.__struct_fields__}
    return SamplingParams(**fields | {"max_tokens": count, "ignore_eos": True})


def prompt(length: int, seed: int = 0) -> list[int]:
    return random_ids(length, 160, seed).tolist()


@pytest.mark.parametrize("kind", list(PARAMS))
def test_the_tokens_and_what_is_reported_are_those_of_model_and_sampler(
    plain: Engine, stepping: Engine, kind: str
) -> None:
    ids = prompt(20)
    expected = turn(plain, ids, PARAMS[kind], 40, kind)
    tokens = turn(stepping, ids, PARAMS[kind], 40)
    assert [token.id for token in tokens] == [token.id for token in expected]
    for ours, theirs in zip(tokens, expected, strict=True):
        assert ours.logprob == pytest.approx(theirs.logprob, abs=1e-4)
        assert ours.residual == pytest.approx(theirs.residual, rel=1e-4)
        assert [a.id for a in ours.alternatives] == [a.id for a in theirs.alternatives]
    assert stepping.last_turn.reason == "length"
    assert stepping.session("a").ids == ids + [token.id for token in tokens]


def test_a_stop_token_ends_the_turn_and_is_not_fed(
    plain: Engine, stepping: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = prompt(12, 1)
    free = [token.id for token in turn(plain, ids, PARAMS["draw"], 30, "free")]
    stop = free[20]
    first = free.index(stop)
    monkeypatch.setattr(Engine, "stop_ids", frozenset({stop}))
    for engine in (plain, stepping):
        tokens = list(engine.generate(ids, PARAMS["draw"], conversation="stop"))
        assert [token.id for token in tokens] == free[:first]
        assert (engine.last_turn.reason, engine.last_turn.stop_id) == ("stop", stop)
        assert engine.session("stop").ids == ids + free[:first]
    # What was computed after the stop has left nothing behind.
    follow = ids + free[:first] + prompt(30, 2)
    expected = [token.id for token in turn(plain, follow, PARAMS["greedy"], 20, "stop")]
    assert [token.id for token in turn(stepping, follow, PARAMS["greedy"], 20, "stop")] == expected
    assert stepping.last_turn.reused == len(ids) + first


def test_going_back_is_exact(plain: Engine, stepping: Engine) -> None:
    ids = prompt(140, 3)
    answer = [token.id for token in turn(stepping, ids, PARAMS["greedy"], 30)]
    other = [*ids, *prompt(40, 4)]
    again = [token.id for token in turn(stepping, other, PARAMS["greedy"], 30)]
    assert stepping.last_turn.reused >= len(ids) - 1
    assert again == [token.id for token in turn(plain, other, PARAMS["greedy"], 30, "other")]
    assert answer == [token.id for token in turn(stepping, ids, PARAMS["greedy"], 30)]


def test_two_turns_may_take_turns(plain: Engine, stepping: Engine) -> None:
    prompts = {"x": prompt(18, 5), "y": prompt(25, 6)}
    expected = {
        name: [token.id for token in turn(plain, ids, PARAMS["draw"], 16, f"apart {name}")]
        for name, ids in prompts.items()
    }
    running = {
        name: stepping.generate(ids, params_for(PARAMS["draw"], 16), conversation=name)
        for name, ids in prompts.items()
    }
    got: dict[str, list[int]] = {"x": [], "y": []}
    for name, count in (("x", 3), ("y", 5), ("x", 1), ("y", 1), ("x", 12), ("y", 10)):
        got[name] += _take(running[name], count)
    assert got == expected


def _take(tokens: Iterator[Token], count: int) -> list[int]:
    return [token.id for token in islice(tokens, count)]


def test_a_turn_that_is_left_has_fed_what_it_handed_out(stepping: Engine) -> None:
    ids = prompt(15, 7)
    tokens = stepping.generate(ids, params_for(PARAMS["draw"], 20), conversation="left")
    handed = _take(tokens, 4)
    tokens.close()  # type: ignore[attr-defined]
    assert stepping.session("left").ids == ids + handed
    follow = [*ids, *handed, 5]
    list(stepping.generate(follow, params_for(PARAMS["greedy"], 1), conversation="left"))
    assert stepping.last_turn.prefilled == 1


def test_logits_that_cannot_be_sampled_are_told(stepping: Engine) -> None:
    stepping.model.norm = torch.full_like(stepping.model.norm, torch.nan)
    stepping.model.decode_step = DecodeStep(stepping.model)
    with pytest.raises(SamplingError, match="not a number"):
        turn(stepping, prompt(5), PARAMS["draw"], 3)
