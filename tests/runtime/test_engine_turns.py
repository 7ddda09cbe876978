"""Conversations that stay exact whatever is done to a turn, and how turns end."""

import pytest

from dsv4chat.runtime import (
    ContextOverflowError,
    Engine,
    EngineError,
    SamplingParams,
)
from dsv4chat.runtime.cache import KVCache
from tests.support.engines import GREEDY, cold, favour, ids_of, random_ids, stopping_at


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
