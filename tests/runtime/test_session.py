"""Warm sessions: how little they feed, and that what they give is bit for bit what a cold cache gives."""

import random

import pytest
import torch

from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.chunks import PREFILL_STEP
from dsv4chat.runtime.engine import Engine
from dsv4chat.runtime.errors import EngineError
from dsv4chat.runtime.live_cache import LiveCache
from dsv4chat.runtime.session import Session
from tests.support.engines import cold_logits, save_random


@pytest.fixture(scope="module", params=["pro", "flash"])
def engine(request, tmp_path_factory):
    folder = save_random(tmp_path_factory.mktemp("model"), request.param)
    return Engine.load(folder, max_context=1024)


def session_of(engine, live=None, **options):
    return Session(engine.model, live or live_cache(engine), **options)


def live_cache(engine):
    info = engine.info
    return LiveCache(KVCache(engine.config, info.kv_dtype, info.max_context, engine.model.device))


def marks_of(session):
    return sorted(
        (mark for branch in session.root.walk() for mark in branch.marks), key=lambda mark: mark.position
    )


def run(session, ids, boundaries=()):
    """Prepare and feed a whole prompt; the plan and the logits after its last id."""
    plan = session.prepare(ids, boundaries)
    assert session.position == plan.reused
    for size in plan.chunks:
        output = session.feed(ids[session.position : session.position + size], plan.turn)
    assert session.ids == list(ids)
    assert sum(session.chunks) == len(ids)
    return plan, output.logits[-1]


def random_ids(rng, count):
    return [rng.randrange(160) for _ in range(count)]


def test_a_first_turn_feeds_everything_and_the_last_id_alone(engine):
    plan, _ = run(session_of(engine), random_ids(random.Random(2), 300))
    assert plan.reused == 0
    assert plan.chunks == (256, 43, 1)


def test_appending_feeds_only_what_is_new(engine):
    rng = random.Random(3)
    session = session_of(engine)
    ids = random_ids(rng, 50)
    run(session, ids)
    plan = session.prepare(ids + random_ids(rng, 20))
    assert plan.reused == 50


def test_the_same_prompt_again_feeds_one_id(engine):
    session = session_of(engine)
    ids = random_ids(random.Random(4), 130)
    first = run(session, ids)[1]
    plan, second = run(session, ids)
    assert plan.reused == 129
    assert torch.equal(first, second)


def test_a_change_feeds_from_the_last_boundary_before_it(engine):
    rng = random.Random(5)
    session = session_of(engine)
    ids = random_ids(rng, 200)
    boundaries = [40, 90, 91, 150]
    run(session, ids, boundaries)
    for position, reused in ((160, 150), (150, 150), (149, 91), (90, 90), (39, 0)):
        changed = [*ids[:position], (ids[position] + 1) % 160, *ids[position + 1 :]]
        plan, logits = run(session, changed, boundaries)
        assert plan.reused == reused
        assert torch.equal(logits, cold_logits(engine, changed, session.chunks))
        run(session, ids, boundaries)


def test_a_change_inside_a_long_message_feeds_at_most_one_step_more(engine):
    rng = random.Random(6)
    session = session_of(engine)
    ids = random_ids(rng, 900)
    run(session, ids)
    for position in (899, 700, 512, 511, 300):
        changed = [*ids[:position], (ids[position] + 1) % 160, *ids[position + 1 :]]
        reused = session.prepare(changed).reused
        assert position - PREFILL_STEP < reused <= position


def test_one_prompt_of_another_costs_only_the_difference_when_shorter(engine):
    rng = random.Random(7)
    session = session_of(engine)
    ids = random_ids(rng, 120)
    run(session, ids, [60])
    plan, logits = run(session, ids[:61], [60])
    assert plan.reused == 60
    assert torch.equal(logits, cold_logits(engine, ids[:61], session.chunks))


def test_an_interrupted_chunk_is_forgotten(engine, monkeypatch):
    rng = random.Random(8)
    session = session_of(engine)
    ids = random_ids(rng, 150)
    run(session, ids[:100], [50])

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(KVCache, "commit", interrupt)
    plan = session.prepare(ids, [50, 120])
    with pytest.raises(KeyboardInterrupt):
        session.feed(ids[100:120], plan.turn)
    monkeypatch.undo()
    plan, logits = run(session, ids, [50, 120])
    assert plan.reused == 99  # the last mark: the state after the broken chunk is unknown
    assert torch.equal(logits, cold_logits(engine, ids, session.chunks))


def test_an_interrupted_first_chunk_starts_over(engine, monkeypatch):
    session = session_of(engine)
    ids = random_ids(random.Random(9), 40)
    plan = session.prepare(ids)
    monkeypatch.setattr(KVCache, "commit", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        session.feed(ids[:39], plan.turn)
    monkeypatch.undo()
    plan, logits = run(session, ids)
    assert plan.reused == 0
    assert torch.equal(logits, cold_logits(engine, ids, session.chunks))


def test_a_turn_that_was_overtaken_cannot_feed(engine):
    session = session_of(engine)
    ids = random_ids(random.Random(10), 20)
    old = session.prepare(ids)
    run(session, ids)
    with pytest.raises(EngineError, match="Another turn"):
        session.feed([1], old.turn)
    assert session.ids == ids


def test_marks_keep_within_their_budget_and_the_newest_stays(engine):
    rng = random.Random(11)
    roomy = session_of(engine, prefill_step=16)
    ids = random_ids(rng, 237)
    run(roomy, ids, [50, 120])
    budget = sum(mark.nbytes for mark in marks_of(roomy)) // 2
    tight = session_of(engine, prefill_step=16, mark_bytes=budget)
    run(tight, ids, [50, 120])
    marks = marks_of(tight)
    assert sum(mark.nbytes for mark in marks) <= budget
    assert marks[-1].position == 236
    assert {50, 120} <= {mark.position for mark in marks}
    one = session_of(engine, prefill_step=16, mark_bytes=0)
    run(one, ids, [50, 120])
    assert [mark.position for mark in marks_of(one)] == [236]
    changed = [*ids[:180], 0, *ids[181:]]
    plan, logits = run(tight, changed, [50, 120])
    assert 120 <= plan.reused <= 180
    assert torch.equal(logits, cold_logits(engine, changed, tight.chunks))


def going_back(engine, seed):
    """One random program of extending and going back; each step equals a cold cache, and feeds little."""
    rng = random.Random(seed)
    session = session_of(engine)
    ids, boundaries = random_ids(rng, rng.randrange(1, 140)), set()
    for _ in range(5):
        boundaries |= {rng.randrange(1, len(ids) + 1) for _ in range(rng.randrange(3))}
        plan, logits = run(session, ids, boundaries)
        assert torch.equal(logits, cold_logits(engine, ids, session.chunks)), f"seed {seed}"
        assert sum(plan.chunks) == len(ids) - plan.reused
        if rng.random() < 0.5:
            kept = rng.randrange(1, len(ids) + 1)
            ids = ids[:kept]
            boundaries = {b for b in boundaries if b <= kept}
        ids = ids + random_ids(rng, rng.choice([1, 2, 3, 5, 40, 130]))


@pytest.mark.parametrize("seed", range(8))
def test_going_back_and_on_equals_a_cold_cache_bit_for_bit(engine, seed):
    going_back(engine, seed)


@pytest.mark.soak
def test_going_back_and_on_equals_a_cold_cache_bit_for_bit_300_times(engine):
    for seed in range(1000, 1300):
        going_back(engine, seed)
