"""Several conversations and branches in one engine: each stays warm, within the memory they may take."""

import random

import pytest
import torch

from dsv4chat.runtime import Engine, SamplingParams
from dsv4chat.runtime.cache import KVCache
from tests.support.engines import cold_logits, save_random
from tests.support.small_tokenizer import VOCAB_SIZE

ONE = SamplingParams(temperature=0, max_tokens=1, ignore_eos=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Makes engines over one small model."""
    folder = tmp_path_factory.mktemp("model")
    path = save_random(folder, (0, 4, 128), text=True, hidden_size=32, hash_layers=1)
    loaded = Engine.load(path, device="cpu", max_context=6000)

    def make(**options):
        return Engine(loaded.model, loaded.info, loaded.tokenizer, **options)

    return make


def random_ids(seed, count):
    rng = random.Random(seed)
    return [rng.randrange(3, VOCAB_SIZE) for _ in range(count)]


def turn(engine, ids, conversation="c", boundaries=()):
    """One turn: its report, and all ids that are warm after it."""
    tokens = list(engine.generate(ids, ONE, conversation=conversation, boundaries=boundaries))
    return engine.last_turn, [*ids, *(token.id for token in tokens)]


def assert_exact(engine, ids, conversation="c"):
    """One more id after `ids`, which are warm: the logits are those of a fresh cache."""
    session = engine.session(conversation)
    plan = session.prepare([*ids, 11])
    assert plan.chunks == (1,)
    output = session.feed([11], plan.turn)
    assert torch.equal(output.logits[-1], cold_logits(engine, [*ids, 11], session.chunks))


def figures(engine):
    return {entry.conversation: entry for entry in engine.stats()}


def memory(engine):
    return sum(entry.memory_bytes for entry in engine.stats())


def test_two_conversations_in_turn_both_stay_warm(model):
    """Probe 9: A, B, A, B."""
    engine = model()
    lines = {name: random_ids(seed, count) for name, seed, count in (("a", 1, 300), ("b", 2, 140))}
    for number in range(3):
        for name in "ab":
            report, lines[name] = turn(engine, [*lines[name], 30 + number], name)
            assert report.prefilled == (len(lines[name]) - 1 if number == 0 else 1)
    for name in "abab":
        assert_exact(engine, lines[name], name)


def test_one_conversation_is_live_and_the_other_in_memory(model):
    engine = model()
    _, a = turn(engine, random_ids(3, 200), "a")
    turn(engine, random_ids(4, 100), "b")
    found = figures(engine)
    assert list(found) == ["b", "a"]
    assert (found["a"].tokens, found["a"].live_bytes, found["a"].disk_bytes) == (201, 0, 0)
    assert found["a"].memory_bytes > engine.conversations.live.cache.row_bytes(0, 201)
    assert found["b"].live_bytes > 0
    before = found["a"].memory_bytes
    turn(engine, [*a, 9], "a")
    found = figures(engine)
    assert found["a"].live_bytes > 0
    assert found["b"].live_bytes == 0
    assert found["a"].memory_bytes < before


def test_a_branch_that_was_left_costs_a_restore_and_the_shared_part_is_there_once(model):
    engine = model()
    ids = random_ids(5, 1000)
    _, a = turn(engine, [*ids, *random_ids(6, 300)], boundaries=[1000])
    alone = memory(engine)
    report, b = turn(engine, [*ids, *random_ids(7, 300)], boundaries=[1000])
    assert (report.reused, report.restored) == (1000, "memory")
    rows = engine.conversations.live.cache.row_bytes
    # The marks apart, the other branch added the rows of its own 301 ids and nothing of the 1,000.
    marks = sum(mark.nbytes for branch in engine.session("c").root.walk() for mark in branch.marks)
    assert memory(engine) - marks == rows(1000, 1301)
    assert memory(engine) > alone
    for line in (a, b, a, b):
        assert_exact(engine, line)
        assert engine.session("c").ids == [*line, 11]


def test_both_variants_of_what_stands_before_the_first_message_stay_warm(model):
    engine = model()
    chat = random_ids(8, 150)
    plain, tools = [0, *chat], [0, *random_ids(9, 200), *chat]
    for _ in range(2):
        for number, start in enumerate((plain, tools)):
            report, line = turn(engine, [*start, 40 + number])
            assert_exact(engine, line)
    assert report.reused == len(tools)


def test_what_does_not_fit_into_memory_goes_to_disk_and_comes_back(model, tmp_path):
    lines = {name: random_ids(10 + number, 400) for number, name in enumerate("abc")}
    roomy = model()
    for name, ids in lines.items():
        turn(roomy, ids, name)
    budget = max(entry.memory_bytes for entry in roomy.stats()) * 2
    engine = model(cache_memory=budget, cache_folder=tmp_path)
    for name in "abc":
        _, lines[name] = turn(engine, lines[name], name)
        assert memory(engine) <= budget
    found = figures(engine)
    assert found["a"].memory_bytes < found["b"].memory_bytes  # the one used longest ago went first
    assert found["a"].disk_bytes > 0
    for number, name in enumerate("abcacb"):
        report, lines[name] = turn(engine, [*lines[name], 50 + number], name)
        assert report.prefilled == 1
        assert memory(engine) <= budget
        assert_exact(engine, lines[name], name)
        lines[name].append(11)
    assert report.notices == []


def test_a_left_branch_goes_to_disk_before_the_one_in_use(model, tmp_path):
    ids = random_ids(13, 300)
    engine = model(cache_folder=tmp_path)
    engine.session("c")
    engine.conversations.budget = 0
    _, a = turn(engine, [*ids, *random_ids(14, 200)], boundaries=[300])
    report, b = turn(engine, [*ids, *random_ids(15, 200)], boundaries=[300])
    assert (report.reused, report.restored) == (300, "memory")
    report, _ = turn(engine, [*a, 9])
    assert (report.prefilled, report.restored) == (1, "disk")
    report, _ = turn(engine, [*b, 9])
    assert (report.prefilled, report.restored) == (1, "disk")


def test_without_a_folder_what_does_not_fit_is_forgotten_and_the_one_in_use_is_not(model):
    engine = model(cache_memory=0)
    _, a = turn(engine, random_ids(16, 300), "a")
    report, a = turn(engine, [*a, 9], "a")
    assert report.prefilled == 1
    turn(engine, random_ids(17, 50), "b")
    assert [entry.conversation for entry in engine.stats()] == ["b"]
    report, _ = turn(engine, [*a, 9], "a")
    assert report.reused == 0
    assert_exact(engine, [*a, 9, engine.session("a").ids[-1]], "a")


def test_what_cannot_be_written_is_forgotten_and_told(model, tmp_path):
    folder = tmp_path / "cache"
    folder.write_text("a file in the way")
    engine = model(cache_memory=0, cache_folder=folder)
    _, a = turn(engine, random_ids(18, 100), "a")
    turn(engine, random_ids(19, 100), "b")
    report, _ = turn(engine, [*a, 9], "a")
    assert report.reused == 0
    assert_exact(engine, engine.session("a").ids, "a")


def test_released_conversations_take_no_memory_and_come_back(model, tmp_path):
    engine = model(cache_folder=tmp_path)
    _, line = turn(engine, random_ids(20, 300))
    engine.conversations.release("c")
    (entry,) = engine.stats()
    assert (entry.live_bytes, entry.memory_bytes) == (0, 0)
    assert entry.disk_bytes > 0
    assert_exact(engine, line)


def test_what_would_be_reused_is_known_beforehand_and_looking_changes_nothing(model):
    engine = model()
    ids = random_ids(21, 300)
    _, line = turn(engine, ids, boundaries=[120])
    for prompt, reused in (([*line, 9], 301), ([*ids[:130], 5], 120), ([0, 5], 0)):
        assert engine.reusable(prompt, "c") == reused
    assert engine.session("c").ids == line
    report, _ = turn(engine, [*line, 9])
    assert report.reused == 301


def test_a_turn_goes_on_after_another_conversation_had_its_turn_in_between(model):
    engine = model()
    params = SamplingParams(temperature=0, max_tokens=6, ignore_eos=True)
    ids, other = random_ids(22, 150), random_ids(23, 90)
    expected = [token.id for token in engine.generate(ids, params, conversation="alone")]
    running = engine.generate(ids, params, conversation="a")
    got = []
    for token in running:
        got.append(token.id)
        turn(engine, [*other, *got], "b")
    assert got == expected


def test_a_turn_left_behind_cannot_write_into_a_step_of_another(model, monkeypatch):
    """Its iterator may be closed by the garbage collector at any moment."""
    engine = model()
    left = engine.generate(random_ids(24, 30), SamplingParams(temperature=0), conversation="a")
    next(left)
    ids = random_ids(25, 60)
    expected = engine.logits(ids, [59, 1])[-1]
    begin = KVCache.begin

    def closing(cache, tokens):
        left.close()
        return begin(cache, tokens)

    session = engine.session("b")
    plan = session.prepare(ids)
    monkeypatch.setattr(KVCache, "begin", closing)
    for size in plan.chunks:
        output = session.feed(ids[session.position : session.position + size], plan.turn)
    monkeypatch.undo()
    assert torch.equal(output.logits[-1], expected)
    assert_exact(engine, engine.session("a").ids, "a")


@pytest.mark.parametrize("whole", [True, False])
def test_an_error_in_the_middle_of_going_elsewhere_leaves_all_versions_good(model, monkeypatch, whole):
    engine = model()
    ids = random_ids(26, 200)
    _, a = turn(engine, [*ids, *random_ids(27, 90)], boundaries=[200])
    _, b = turn(engine, [*ids, *random_ids(28, 90)], boundaries=[200])
    with monkeypatch.context() as patch:
        patch.setattr(KVCache, "restore" if whole else "put_rows", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            turn(engine, [*a, 9])
    for line in (a, b, a):
        assert_exact(engine, line)


# ---- how much is fed, and the end of the context -------------------------------------------------------


@pytest.mark.parametrize("length", [50, 5000])
def test_a_turn_feeds_what_is_new_in_short_and_long_chats(model, length):
    """Probe 10: also when reasoning is dropped from the last answer."""
    engine = model()
    tokenizer = engine.require_tokenizer()
    opener = [tokenizer.user_id, *random_ids(29, length), tokenizer.assistant_id]
    prompt = [tokenizer.bos_id, *opener, tokenizer.think_start_id]
    places = [1, len(prompt) - 2, len(prompt) - 1]
    report, _ = turn(engine, prompt, boundaries=places)
    assert report.prefilled == len(prompt)
    reasoning, answer = random_ids(30, 40), random_ids(31, 20)
    session = engine.session("c")
    spoken = [*prompt, *reasoning, tokenizer.think_end_id, *answer]
    plan = session.prepare(spoken, places)
    for size in plan.chunks:
        session.feed(spoken[session.position : session.position + size], plan.turn)
    question = [tokenizer.eos_id, tokenizer.user_id, 9, 8, tokenizer.assistant_id, tokenizer.think_start_id]
    kept, _ = turn(engine, [*spoken, *question])
    assert kept.prefilled == len(question)
    dropped, _ = turn(engine, [*prompt[:-1], tokenizer.think_end_id, *answer, *question])
    assert dropped.prefilled == 1 + len(answer) + len(question)


def test_the_room_that_is_left_is_told_and_the_end_is_exact(model):
    """Probe 11: one before, at, and one after the end, with a warm cache; nothing is lost."""
    loaded = model()
    engine = Engine(
        loaded.model,
        type(loaded.info)(**{**_fields(loaded.info), "max_context": 40}),
        loaded.tokenizer,
    )
    unlimited = SamplingParams(temperature=0, ignore_eos=True)
    ids = random_ids(32, 41)
    report, line = turn(engine, ids[:30])
    assert (report.room, len(line)) == (9, 31)
    tokens = list(engine.generate([*line, 5], unlimited, conversation="c"))
    report = engine.last_turn
    assert (len(tokens), report.reason, report.room, report.reused) == (8, "length", 0, 31)
    full = [*line, 5, *(token.id for token in tokens)]
    assert len(full) == 40
    with pytest.raises(Exception, match=r"has 41 tokens and the context holds 40"):
        engine.generate([*full, 5], unlimited, conversation="c")
    assert list(engine.generate(full, unlimited, conversation="c")) == []
    assert (engine.last_turn.reason, engine.last_turn.room) == ("length", 0)
    shorter, _ = turn(engine, [*line, 5, 6])
    assert (shorter.reused, shorter.room) == (31, 6)
    # The oldest turns dropped: what remains is fed again, and exact.
    remaining = full[20:]
    report, line = turn(engine, remaining)
    assert report.prefilled == len(remaining)
    assert_exact(engine, line)


def _fields(info):
    return {name: getattr(info, name) for name in info.__dataclass_fields__}
