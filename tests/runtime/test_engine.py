"""The engine: its figures against transformers, and conversations that stay exact whatever is done."""

import json
import math
import random

import pytest
import torch

from dsv4chat.runtime import (
    ConfigError,
    ContextOverflowError,
    Engine,
    EngineError,
    SamplingError,
    SamplingParams,
    TokenizerMissingError,
)
from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.model import Output
from tests.support.random_models import random_model
from tests.support.small_tokenizer import VOCAB_SIZE

GREEDY = SamplingParams(temperature=0, max_tokens=12, ignore_eos=True)


@pytest.fixture(scope="module", params=["pro", "flash"])
def oracle(request):
    return random_model(request.param, seed=3)


@pytest.fixture(scope="module")
def exact(oracle, tmp_path_factory):
    """The oracle's own save_pretrained folder, everything in float32."""
    folder = tmp_path_factory.mktemp("exact")
    oracle.save_pretrained(folder)
    return Engine.load(folder, device="cpu", dtype="float32", kv_dtype="float32", max_context=1024)


@pytest.fixture
def engine(folder):
    return Engine.load(folder, max_context=512)


def random_ids(seed, count, vocab=160):
    rng = random.Random(seed)
    return [rng.randrange(vocab) for _ in range(count)]


def ids_of(tokens):
    return [token.id for token in tokens]


def favour(engine, monkeypatch, token, after=0):
    """Let the model give `token` by far the highest logit, once it holds `after` ids."""
    forward = engine.model.forward

    def favouring(ids, cache, logits="last", trace=None):
        output = forward(ids, cache, logits, trace)
        if cache.position <= after:
            return output
        other = output.logits.clone()
        other[:, token] = 1000.0
        return Output(other, output.residual)

    monkeypatch.setattr(engine.model, "forward", favouring)


def cold(engine, ids, params=GREEDY, **options):
    """What a conversation that has never been used generates."""
    tokens = ids_of(engine.generate(ids, params, conversation="cold", **options))
    engine.drop("cold")
    return tokens


# ---- against transformers ------------------------------------------------------------------------------


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


# ---- conversations -------------------------------------------------------------------------------------


def test_the_same_prompt_three_times_gives_the_same_answer(engine):
    """Probe 7: warm or cold."""
    ids = random_ids(8, 90)
    first = ids_of(engine.generate(ids, GREEDY))
    for _ in range(2):
        assert ids_of(engine.generate(ids, GREEDY)) == first
        assert engine.last_turn.reused == 89
        assert engine.last_turn.prefilled == 1
    assert cold(engine, ids) == first


def test_prefilled_counts_what_is_new_and_the_end_token(engine):
    """Probe 10, on ids: an appended turn feeds the end token and the new ids, nothing else."""
    ids = random_ids(9, 50)
    answer = ids_of(engine.generate(ids, GREEDY))
    assert engine.last_turn.prefilled == 50
    assert engine.last_turn.reused == 0
    following = [*ids, *answer, 1, *random_ids(10, 20)]
    list(engine.generate(following, GREEDY))
    assert engine.last_turn.prefilled == 1 + 20
    assert engine.last_turn.reused == 50 + len(answer)


def test_dropping_reasoning_goes_back_to_the_assistant_token(engine):
    prompt = random_ids(11, 40)
    spoken = ids_of(engine.generate(prompt, GREEDY, boundaries=[20, 39]))
    following = [*prompt[:39], 99, *spoken[-3:], 1, *random_ids(12, 8)]
    list(engine.generate(following, GREEDY, boundaries=[20, 39]))
    assert engine.last_turn.reused == 39
    assert engine.last_turn.prefilled == len(following) - 39


def test_stopping_during_prefill_leaves_a_good_conversation(engine):
    """Probe 8."""
    ids = random_ids(13, 400)
    calls = iter([False, False, True])
    tokens = list(engine.generate(ids, GREEDY, boundaries=[100, 200, 300], should_stop=lambda: next(calls)))
    assert tokens == []
    assert engine.last_turn.reason == "stopped"
    assert engine.last_turn.prefilled == 200
    other = ids[:150] + random_ids(14, 30)
    assert ids_of(engine.generate(other, GREEDY)) == cold(engine, other)
    assert ids_of(engine.generate(ids, GREEDY, boundaries=[100, 200, 300])) == cold(
        engine, ids, boundaries=[100, 200, 300]
    )


def test_stopping_during_decode_leaves_a_good_conversation(engine):
    """Probe 8: should_stop ends it after the token that is out, and that token is in the cache."""
    ids = random_ids(15, 60)
    tokens = []
    for token in engine.generate(ids, GREEDY, should_stop=lambda: len(tokens) == 4):
        tokens.append(token)
    assert len(tokens) == 4
    assert engine.last_turn.reason == "stopped"
    assert engine.last_turn.tokens == 4
    following = [*ids, *ids_of(tokens), 5, 6]
    list(engine.generate(following, GREEDY))
    assert engine.last_turn.prefilled == 2
    assert ids_of(engine.generate([*ids, 7], GREEDY)) == cold(engine, [*ids, 7])


def test_leaving_the_loop_leaves_a_good_conversation(engine):
    ids = random_ids(16, 60)
    tokens = engine.generate(ids, GREEDY)
    first = [next(tokens).id, next(tokens).id]
    tokens.close()
    assert engine.last_turn.reason == "stopped"
    following = [*ids, *first, 9]
    assert engine.session().prepare(following).reused == 62
    assert ids_of(engine.generate(following, GREEDY)) == cold(engine, following)


def test_an_error_in_the_middle_of_a_step_leaves_a_good_conversation(engine, monkeypatch):
    ids = random_ids(17, 60)
    tokens = engine.generate(ids, GREEDY)
    kept = [next(tokens).id, next(tokens).id]
    monkeypatch.setattr(KVCache, "commit", lambda *_: 1 / 0)  # every layer has been written by then
    with pytest.raises(ZeroDivisionError):
        next(tokens)
    assert engine.last_turn.reason == "failed"
    monkeypatch.undo()
    following = [*ids, *kept, 3]
    assert ids_of(engine.generate(following, GREEDY)) == cold(engine, following)


def test_conversations_in_turn_do_not_disturb_each_other(engine):
    """Probe 9: A, B, A."""
    a, b = random_ids(18, 70), random_ids(19, 130)
    answer = ids_of(engine.generate(a, GREEDY, conversation="a"))
    assert ids_of(engine.generate(b, GREEDY, conversation="b")) == cold(engine, b)
    following = [*a, *answer, 1, 20, 21]
    warm = ids_of(engine.generate(following, GREEDY, conversation="a"))
    assert engine.last_turn.prefilled == 3
    assert warm == cold(engine, following)


def test_interleaved_turns_of_two_conversations_stay_apart(engine):
    a, b = random_ids(20, 40), random_ids(21, 41)
    expected = cold(engine, a), cold(engine, b)
    first = engine.generate(a, GREEDY, conversation="a")
    second = engine.generate(b, GREEDY, conversation="b")
    pairs = [(x.id, y.id) for x, y in zip(first, second, strict=False)]
    assert ([x for x, _ in pairs], [y for _, y in pairs]) == expected


def test_a_turn_overtaken_in_its_own_conversation_says_so(engine):
    ids = random_ids(22, 30)
    first = engine.generate(ids, GREEDY)
    next(first)
    expected = cold(engine, ids[:20])
    assert ids_of(engine.generate(ids[:20], GREEDY)) == expected
    with pytest.raises(EngineError, match="Another turn"):
        next(first)


def test_logits_leave_the_warm_conversation_alone(engine):
    ids = random_ids(23, 50)
    answer = ids_of(engine.generate(ids, GREEDY))
    engine.logits(random_ids(24, 80))
    list(engine.generate([*ids, *answer, 1], GREEDY))
    assert engine.last_turn.prefilled == 1


# ---- the end of a turn ---------------------------------------------------------------------------------


def stopping_at(folder, tmp_path, token):
    """The same weights, whose end token is `token`, without a tokenizer."""
    for file in folder.iterdir():
        if file.name != "tokenizer.json":
            (tmp_path / file.name).symlink_to(file)
    config = json.loads((folder / "config.json").read_text())
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").write_text(json.dumps(config | {"eos_token_id": token}))
    return Engine.load(tmp_path, max_context=512)


def test_the_end_token_ends_the_turn_and_is_neither_yielded_nor_fed(engine, folder, tmp_path):
    ids = random_ids(25, 33)
    answer = ids_of(engine.generate(ids, GREEDY))
    end = next(index for index in range(1, 12) if answer[index] not in answer[:index])
    ending = stopping_at(folder, tmp_path, answer[end])
    tokens = list(ending.generate(ids, SamplingParams(temperature=0)))
    assert ids_of(tokens) == answer[:end]
    turn = ending.last_turn
    assert (turn.reason, turn.stop_id, turn.tokens) == ("stop", answer[end], end)
    list(ending.generate([*ids, *answer[:end], answer[end], 5], SamplingParams(temperature=0, max_tokens=1)))
    assert ending.last_turn.prefilled == 2
    ignoring = list(ending.generate(ids, GREEDY))
    assert ids_of(ignoring) == answer
    assert ending.last_turn.reason == "length"


@pytest.mark.parametrize("name", ["eos_id", "user_id"])
def test_the_tokenizers_stop_tokens_end_a_turn(engine, monkeypatch, name):
    stop_id = getattr(engine.require_tokenizer(), name)
    favour(engine, monkeypatch, stop_id, after=3)
    tokens = list(engine.generate([0, 5], SamplingParams(seed=1)))
    turn = engine.last_turn
    assert (len(tokens), turn.tokens, turn.reason, turn.stop_id) == (2, 2, "stop", stop_id)
    assert len(list(engine.generate([0, 5], SamplingParams(seed=1, ignore_eos=True, max_tokens=9)))) == 9


def test_max_tokens_ends_a_turn(engine):
    assert len(list(engine.generate([3, 4], SamplingParams(max_tokens=5, ignore_eos=True)))) == 5
    assert engine.last_turn.reason == "length"
    assert list(engine.generate([3, 4], SamplingParams(max_tokens=0))) == []
    turn = engine.last_turn
    assert (turn.reason, turn.reused + turn.prefilled) == ("length", 2)


def test_the_context_limit(folder):
    """Probe 11: one before, exactly at, and one after."""
    engine = Engine.load(folder, max_context=40)
    ids = random_ids(26, 41)
    unlimited = SamplingParams(temperature=0, ignore_eos=True)
    roomy = ids_of(engine.generate(ids[:30], unlimited))
    assert len(roomy) == 10
    assert engine.last_turn.reason == "length"
    one_before = ids_of(engine.generate(ids[:39], unlimited))
    assert len(one_before) == 1
    assert engine.last_turn.reason == "length"
    assert list(engine.generate(ids[:40], unlimited)) == []
    assert engine.last_turn.reason == "length"
    with pytest.raises(ContextOverflowError, match=r"has 41 tokens and the context holds 40"):
        engine.generate(ids, unlimited)
    with pytest.raises(ContextOverflowError):
        engine.logits(ids)
    assert engine.logits(ids[:40]).shape[0] == 40
    # Nothing was lost: the conversation goes on as before.
    assert ids_of(engine.generate(ids[:39], unlimited)) == one_before
    assert ids_of(engine.generate(ids[:30], unlimited)) == roomy


# ---- figures and text ----------------------------------------------------------------------------------


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
