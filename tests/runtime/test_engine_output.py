"""What a turn tells: times, text, alternatives, choices; and what the engine refuses."""

import math

import pytest
import torch

from dsv4chat.runtime import (
    ConfigError,
    Engine,
    EngineError,
    SamplingError,
    SamplingParams,
    TokenizerMissingError,
)
from dsv4chat.runtime.model import Output
from tests.support.engines import GREEDY, cold, favour, ids_of, random_ids, stopping_at
from tests.support.small_tokenizer import VOCAB_SIZE


def test_a_turn_reports_its_times(engine):
    tokens = list(engine.generate(random_ids(27, 300), GREEDY))
    turn = engine.last_turn
    assert all(token.milliseconds > 0 for token in tokens)
    assert turn.first_decode_ms == tokens[0].milliseconds
    assert turn.ttft_ms >= turn.prefill_ms + turn.first_decode_ms
    assert turn.ttft_ms - turn.prefill_ms - turn.first_decode_ms < 5
    assert turn.tokens_per_second == pytest.approx(1000 * 12 / sum(token.milliseconds for token in tokens))


def test_prefill_progress_is_told(engine):
    told = []
    ids = random_ids(28, 300)
    list(engine.generate(ids, GREEDY, boundaries=[10], on_prefill=lambda *figures: told.append(figures)))
    assert told == [(0, 300, 0), (10, 300, 0), (256, 300, 0), (299, 300, 0), (300, 300, 0)]
    told.clear()
    list(engine.generate([*ids[:100], 1], GREEDY, on_prefill=lambda *figures: told.append(figures)))
    assert told[-1] == (91, 91, 10)


def test_text_is_complete_characters_and_the_tail_is_kept(engine):
    tokenizer = engine.require_tokenizer()
    params = SamplingParams(seed=2, temperature=3.0, max_tokens=60, ignore_eos=True)
    tokens = list(engine.generate([0, 40], params))
    text = "".join(token.text for token in tokens) + engine.last_turn.tail
    assert text == tokenizer.decode(ids_of(tokens))
    assert any(token.text == "" for token in tokens)


def test_alternatives_are_the_most_probable_with_their_text(engine):
    token = next(engine.generate([0, 40], GREEDY, alternatives=5))
    assert len(token.alternatives) == 5
    assert token.alternatives[0].id == token.id
    assert token.alternatives[0].logprob == pytest.approx(token.logprob)
    logprobs = [alternative.logprob for alternative in token.alternatives]
    assert logprobs == sorted(logprobs, reverse=True)
    text = engine.require_tokenizer().token_text
    assert [alternative.text for alternative in token.alternatives] == [
        text(alternative.id) for alternative in token.alternatives
    ]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_rows_beyond_the_tokenizer_are_never_chosen(engine, monkeypatch, temperature):
    assert engine.config.vocab_size == VOCAB_SIZE + 3
    favour(engine, monkeypatch, VOCAB_SIZE + 1)
    params = SamplingParams(seed=1, temperature=temperature, max_tokens=20, ignore_eos=True)
    tokens = list(engine.generate([0], params, alternatives=400))
    assert max(ids_of(tokens)) < VOCAB_SIZE
    assert max(other.id for token in tokens for other in token.alternatives) < VOCAB_SIZE


def test_a_seed_repeats_a_turn_and_none_does_not(engine):
    params = SamplingParams(seed=77, max_tokens=20, ignore_eos=True)
    first = ids_of(engine.generate([0, 9], params))
    assert ids_of(engine.generate([0, 9], params)) == first
    free = SamplingParams(max_tokens=20, ignore_eos=True, temperature=2.0)
    assert ids_of(engine.generate([0, 9], free)) != ids_of(engine.generate([0, 9], free))


# ---- loading and refusals ------------------------------------------------------------------------------


def test_automatic_choices_on_a_cpu(engine):
    info = engine.info
    if torch.cuda.is_available():
        pytest.skip("the machine has a GPU, so auto chooses it")
    assert (info.device, info.dtype, info.kv_dtype) == ("cpu", "float32", "fp8")
    assert info.parameters > 0
    assert info.weight_bytes > 0
    assert info.load_seconds > 0


def test_the_context_is_the_models_own_by_default(folder):
    assert Engine.load(folder).info.max_context == 32_768


def test_without_a_tokenizer_ids_work_and_text_is_refused(folder, tmp_path):
    engine = stopping_at(folder, tmp_path, 1)
    tokens = list(engine.generate([3, 4], SamplingParams(max_tokens=4), alternatives=2))
    assert all(token.text == "" for token in tokens)
    assert all(alternative.text == "" for token in tokens for alternative in token.alternatives)
    assert engine.tokenizer is None
    with pytest.raises(TokenizerMissingError, match=r"tokenizer\.json"):
        engine.require_tokenizer()


@pytest.mark.parametrize(
    ("ids", "sentence"),
    [
        ([], "no ids"),
        ([3, VOCAB_SIZE + 3], "outside the model's vocabulary"),
        ([-1], "outside the model's vocabulary"),
        ([1.5], "whole numbers"),
        ([True], "whole numbers"),
        (torch.tensor([True, False]), "whole numbers"),
        (["a"], "whole numbers"),
    ],
)
def test_ids_that_are_none_are_refused_at_once(engine, ids, sentence):
    """Probe 14: never an index."""
    with pytest.raises(EngineError, match=sentence):
        engine.generate(ids, GREEDY)
    with pytest.raises(EngineError, match=sentence):
        engine.logits(ids)


@pytest.mark.parametrize("chunk", [[3], [2, 3], [0, 4], 0, -1, 2.5, True, [2.5, 1.5], [True, 3], "ab"])
def test_chunks_that_do_not_fit_are_refused(engine, chunk):
    with pytest.raises(EngineError, match=r"(?i)chunk"):
        engine.logits([1, 2, 3, 4], chunk)


def test_parameters_are_checked_at_once(engine):
    with pytest.raises(SamplingError, match="temperature"):
        engine.generate([1], SamplingParams(temperature=-1))


@pytest.mark.parametrize("boundary", [-1, 4, 1.5, True])
def test_a_boundary_that_is_none_is_refused_at_once(engine, boundary):
    with pytest.raises(EngineError, match=r"(?i)boundar"):
        engine.generate([1, 2, 3], GREEDY, boundaries=[2, boundary])


@pytest.mark.parametrize("count", [-1, 2.5, True])
def test_alternatives_are_a_number_of_them(engine, count):
    with pytest.raises(EngineError, match="alternatives"):
        engine.generate([1, 2, 3], GREEDY, alternatives=count)


@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_logits_that_cannot_be_sampled_are_an_error(engine, monkeypatch, value):
    """Probe 14."""
    forward = engine.model.forward

    def broken(ids, cache, logits="last", trace=None):
        output = forward(ids, cache, logits, trace)
        return Output(torch.full_like(output.logits, value), output.residual)

    monkeypatch.setattr(engine.model, "forward", broken)
    with pytest.raises(SamplingError, match="no token can be chosen"):
        list(engine.generate([1, 2], GREEDY))
    monkeypatch.undo()
    assert ids_of(engine.generate([1, 2], GREEDY)) == cold(engine, [1, 2])


@pytest.mark.parametrize(
    "options",
    [
        {"device": "tpu"},
        {"dtype": "float16"},
        {"kv_dtype": "int8"},
        {"max_context": 0},
        {"max_context": 1.5},
        {"max_context": True},
        {"cache_memory": -1},
        {"cache_disk": 0.5},
    ],
)
def test_options_not_on_the_list_are_refused(folder, options):
    with pytest.raises(EngineError, match=next(iter(options))):
        Engine.load(folder, **options)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_is_refused_where_there_is_none(folder):
    with pytest.raises(EngineError, match="CUDA"):
        Engine.load(folder, device="cuda")


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(ConfigError, match="no folder"):
        Engine.load(tmp_path / "nothing")


def test_loading_tells_its_progress(folder):
    told = []
    Engine.load(folder, progress=lambda *figures: told.append(figures))
    assert told == sorted(told)
    assert told[-1][2] == told[-1][3]
