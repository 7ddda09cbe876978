"""Saved caches: they come back bitwise, whole or not at all, and only to whom they belong."""

import json
import os
import random
import stat
import struct

import pytest
import torch

from dsv4chat.runtime import Engine, EngineError, SamplingParams
from dsv4chat.runtime.cache_folder import CacheFolder
from dsv4chat.runtime.errors import SavedCacheError
from dsv4chat.runtime.fingerprint import fingerprint
from dsv4chat.runtime.protocol_cache import read_head
from tests.support.engines import cold_logits, save_random
from tests.support.small_tokenizer import VOCAB_SIZE

ONE = SamplingParams(temperature=0, max_tokens=1, ignore_eos=True)
# Probe 1: around the ends of blocks, of the window and of chunks.
LENGTHS = (*range(1, 10), 15, 16, 17, *range(127, 131), *range(255, 258), *range(383, 386), *range(511, 514))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a small model, and how engines over it are made without reading it again."""
    path = save_random(
        tmp_path_factory.mktemp("model"), (0, 4, 128), text=True, hidden_size=32, hash_layers=1
    )
    loaded = Engine.load(path, device="cpu", max_context=1024)

    def make(cache_folder, **options):
        return Engine(loaded.model, loaded.info, loaded.tokenizer, cache_folder=cache_folder, **options)

    return make


def random_ids(seed, count):
    rng = random.Random(seed)
    return [rng.randrange(3, VOCAB_SIZE) for _ in range(count)]


def turn(engine, ids, conversation="c", boundaries=()):
    """One turn: the report, and the next logits, fed to the session by hand."""
    tokens = list(engine.generate(ids, ONE, conversation=conversation, boundaries=boundaries))
    assert len(tokens) == 1
    return engine.last_turn, [*ids, tokens[0].id]


def next_logits(engine, ids, conversation="c"):
    """Logits after `ids`, which continue what is warm; and the same from a fresh cache."""
    session = engine.session(conversation)
    plan = session.prepare(ids)
    for size in plan.chunks:
        output = session.feed(ids[session.position : session.position + size], plan.turn)
    return plan, output.logits[-1], cold_logits(engine, ids, session.chunks)


def files_of(folder):
    return sorted(folder.rglob("*.safetensors"))


def saved(model, folder, ids=None, conversation="c"):
    engine = model(folder)
    _, line = turn(engine, ids or random_ids(1, 300), conversation)
    engine.save(conversation)
    return line


@pytest.mark.parametrize("length", LENGTHS)
def test_a_conversation_of_any_length_comes_back_bitwise(model, tmp_path, length):
    """Probe 1: prefill, decode, save; another engine goes on where this one was."""
    line = saved(model, tmp_path, random_ids(length, length))
    engine = model(tmp_path)
    plan, warm, cold = next_logits(engine, [*line, 5])
    assert (plan.reused, plan.source, plan.chunks) == (length + 1, "disk", (1,))
    assert torch.equal(warm, cold)
    assert engine.session("c").take_notices() == []


@pytest.mark.parametrize("kv_dtype", ["float32", "bfloat16", "fp8"])
def test_every_storage_format_comes_back_bitwise(tmp_path, kv_dtype):
    path = save_random(tmp_path / "model", "pro", text=True)
    line = None
    for _ in range(2):
        engine = Engine.load(path, kv_dtype=kv_dtype, max_context=512, cache_folder=tmp_path / "cache")
        if line is None:
            _, line = turn(engine, random_ids(2, 200))
            engine.save("c")
    plan, warm, cold = next_logits(engine, [*line, 7, 8])
    assert (plan.reused, plan.source) == (201, "disk")
    assert torch.equal(warm, cold)


def test_a_turn_reports_where_its_cache_was(model, tmp_path):
    engine = model(tmp_path)
    first, line = turn(engine, random_ids(3, 40))
    assert (first.restored, first.reused) == ("none", 0)
    second, line = turn(engine, [*line, 9])
    assert (second.restored, second.reused, second.prefilled) == ("memory", 41, 1)
    engine.save("c")
    third, _ = turn(model(tmp_path), [*line, 9])
    assert (third.restored, third.reused, third.prefilled) == ("disk", 43, 1)


def test_resuming_ahead_makes_the_next_turn_as_quick_as_if_nothing_had_happened(model, tmp_path):
    line = saved(model, tmp_path)
    engine = model(tmp_path)
    back = engine.resume("c")
    assert (back.tokens, back.notices) == (301, [])
    assert back.bytes > 0
    report, _ = turn(engine, [*line, 9])
    assert (report.restored, report.prefilled) == ("memory", 1)
    assert model(tmp_path / "other").resume("c").tokens == 0


def test_only_what_is_new_is_written(model, tmp_path):
    engine = model(tmp_path)
    _, line = turn(engine, random_ids(4, 500))
    first = engine.save("c")
    assert (first.files, first.bytes) == (1, sum(path.stat().st_size for path in files_of(tmp_path)))
    assert engine.save("c").files == 0
    turn(engine, [*line, 9])
    second = engine.save("c")
    assert second.files == 1
    assert second.bytes < first.bytes / 2
    engine = model(tmp_path)
    assert engine.resume("c").tokens == 503
    assert engine.save("c").files == 0


def test_branches_and_their_marks_come_back(model, tmp_path):
    ids = random_ids(5, 300)
    engine = model(tmp_path)
    _, a = turn(engine, [*ids, *random_ids(6, 40)], boundaries=[100, 300])
    _, b = turn(engine, [*ids, *random_ids(7, 150)], boundaries=[100, 300, 400])
    _, c = turn(engine, [*ids[:100], *random_ids(8, 20)])
    engine.save("c")
    engine = model(tmp_path)
    visits = [(a, len(a)), (b, 400), (c, len(c)), (ids, 100), (b, len(b)), (a, len(a))]
    for number, (line, reused) in enumerate(visits):
        plan, warm, cold = next_logits(engine, [*line[:reused], 200 + number, 6])
        assert plan.reused == reused
        assert torch.equal(warm, cold)


# ---- what cannot be used -------------------------------------------------------------------------------


def refused(model, folder, line, sentence):
    """A turn that finds an unusable file says so, feeds all ids and is right."""
    engine = model(folder)
    report, _ = turn(engine, [*line, 9])
    assert len(report.notices) == 1, report.notices
    assert sentence in report.notices[0]
    assert "\n" not in report.notices[0]
    assert (report.reused, report.restored) == (0, "none")
    _, warm, cold = next_logits(engine, [*line, 9, 4])
    assert torch.equal(warm, cold)


def test_a_file_cut_short_anywhere_is_recognised(model, tmp_path):
    line = saved(model, tmp_path)
    (path,) = files_of(tmp_path)
    content = path.read_bytes()
    for length in (0, 5, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        refused(model, tmp_path, line, "damaged")
        assert path.exists()


def test_a_changed_byte_anywhere_is_recognised_or_harmless(model, tmp_path):
    """In the head, the rows or the mark in use; a byte of another mark does no harm."""
    line = saved(model, tmp_path)
    (path,) = files_of(tmp_path)
    content = path.read_bytes()
    rng = random.Random(9)
    head = 8 + struct.unpack("<Q", content[:8])[0]
    recognised = 0
    for place in (
        *(rng.randrange(head) for _ in range(7)),
        *(rng.randrange(head, len(content)) for _ in range(7)),
    ):
        changed = bytearray(content)
        changed[place] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        engine = model(tmp_path)
        plan, warm, cold = next_logits(engine, [*line, 9])
        assert torch.equal(warm, cold)
        notices = engine.session("c").take_notices()
        recognised += bool(notices)
        assert notices or plan.reused == len(line)
        assert plan.reused in (0, 256, 299, len(line))
    assert recognised >= 7


def test_a_file_of_another_model_tokenizer_or_format_is_recognised(model, tmp_path):
    line = saved(model, tmp_path)
    (path,) = files_of(tmp_path)
    other = CacheFolder(tmp_path / "other", "f" * 32, "other", (4, 4, 128))
    copy = other._folder("c") / path.name
    copy.parent.mkdir(parents=True)
    copy.write_bytes(path.read_bytes())
    files, notices = other.files("c")
    assert files == []
    assert len(notices) == 1
    assert "another model, tokenizer or number format" in notices[0]
    mine = model(tmp_path).conversations.folder
    wrong = mine._folder("d") / path.name
    wrong.parent.mkdir(parents=True)
    wrong.write_bytes(path.read_bytes())
    refused_report, _ = turn(model(tmp_path), [*line, 9], "d")
    assert "another conversation" in refused_report.notices[0]
    assert refused_report.reused == 0


def test_a_file_of_another_version_is_recognised(model, tmp_path):
    line = saved(model, tmp_path)
    (path,) = files_of(tmp_path)
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    head = json.loads(header["__metadata__"]["dsv4chat"]) | {"version": 999, "ids": "of another type"}
    header["__metadata__"]["dsv4chat"] = json.dumps(head)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + size :])
    refused(model, tmp_path, line, "another version")


def test_something_else_under_that_name_is_recognised(model, tmp_path):
    line = saved(model, tmp_path)
    (path,) = files_of(tmp_path)
    path.write_bytes(b"a cat sat on the keyboard" * 9)
    refused(model, tmp_path, line, "damaged")


def test_a_file_that_vanishes_while_it_is_known_is_recognised(model, tmp_path):
    line = saved(model, tmp_path)
    engine = model(tmp_path)
    assert engine.reusable([*line, 9], "c") == 301
    (path,) = files_of(tmp_path)
    path.unlink()
    report, _ = turn(engine, [*line, 9])
    assert (report.reused, len(report.notices)) == (0, 1)
    assert "gone" in report.notices[0]
    engine.save("c")
    assert engine.resume("c").tokens == 303


def test_a_file_whose_beginning_is_lost_is_recognised(model, tmp_path):
    line = saved(model, tmp_path)
    engine = model(tmp_path)
    turn(engine, [*line, 9])
    engine.save("c")
    (first,) = (path for path in files_of(tmp_path) if read_head(path).start == 0)
    first.unlink()
    refused(model, tmp_path, line, "continues one that is gone")


def test_one_damaged_branch_leaves_the_others(model, tmp_path):
    ids = random_ids(10, 300)
    engine = model(tmp_path)
    turn(engine, [*ids, 1, 2, 3], boundaries=[300])
    _, other = turn(engine, [*ids, 7, 8, 9], boundaries=[300])
    engine.save("c")
    (path,) = (path for path in files_of(tmp_path) if read_head(path).ids[:3] == [1, 2, 3])
    path.write_bytes(path.read_bytes()[:-3])
    report, _ = turn(model(tmp_path), [*ids, 1, 2, 3, 4])
    assert (report.reused, len(report.notices)) == (300, 1)
    report, _ = turn(model(tmp_path), [*other, 4])
    assert report.reused == len(other)


# ---- files ---------------------------------------------------------------------------------------------


def test_files_are_private_and_no_half_written_one_is_left(model, tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    old = os.umask(0)
    try:
        line = saved(model, folder)
    finally:
        os.umask(old)
    for path in folder.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o600 if path.is_file() else 0o700), path
    engine = model(folder)
    turn(engine, [*line, 9])

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dsv4chat.runtime.saved_cache._sync", fail)
    with pytest.raises(SavedCacheError, match="No space left"):
        engine.save("c")
    monkeypatch.undo()
    assert [path.name for path in folder.rglob("*") if path.is_file()] == [files_of(folder)[0].name]
    assert engine.save("c").files == 1


def test_saving_without_a_folder_or_into_none_that_can_be_says_so(model, tmp_path):
    for engine in (model(None), model(tmp_path / "cache", cache_disk=0)):
        turn(engine, [1, 2, 3])
        with pytest.raises(SavedCacheError, match="no folder, or no room"):
            engine.save("c")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("in the way")
    engine = model(tmp_path / "file")
    turn(engine, [1, 2, 3])
    with pytest.raises(EngineError, match="could not be saved"):
        engine.save("c")


def test_the_folder_stays_below_its_limit_and_what_was_used_last_stays(model, tmp_path):
    lines = {}
    for number, name in enumerate("abc"):
        lines[name] = saved(model, tmp_path, random_ids(20 + number, 300), name)
    sizes = [path.stat().st_size for path in files_of(tmp_path)]
    engine = model(tmp_path, cache_disk=2 * max(sizes) + max(sizes) // 2)
    engine.resume("a")
    turn(engine, [*lines["a"], 9], "a")
    engine.save("a")
    assert sum(path.stat().st_size for path in files_of(tmp_path)) <= 2.5 * max(sizes)
    again = model(tmp_path)
    assert [again.resume(name).tokens > 0 for name in "abc"] == [True, False, True]


def test_dropping_a_conversation_deletes_its_files(model, tmp_path):
    line = saved(model, tmp_path)
    engine = model(tmp_path)
    engine.resume("c")
    engine.drop("c")
    assert files_of(tmp_path) == []
    assert turn(engine, [*line, 9])[0].reused == 0


def test_what_a_crash_left_is_swept_and_what_is_being_written_is_not(model, tmp_path):
    saved(model, tmp_path)
    (path,) = files_of(tmp_path)
    old, new = path.with_name(".writing-old"), path.with_name(".writing-new")
    for temporary in (old, new):
        temporary.write_bytes(b"half")
    os.utime(old, (0, 0))
    saved(model, tmp_path, random_ids(30, 9), "d")
    assert (old.exists(), new.exists()) == (False, True)


def test_two_engines_may_save_the_same_conversation(model, tmp_path):
    first, second = model(tmp_path), model(tmp_path)
    ids = random_ids(31, 100)
    _, one = turn(first, [*ids, 1])
    _, two = turn(second, [*ids, 2])
    first.save("c")
    second.save("c")
    third = model(tmp_path)
    assert third.reusable([*one, 9], "c") == len(one)
    assert third.reusable([*two, 9], "c") == len(two)


def test_a_fingerprint_tells_models_tokenizers_and_formats_apart(tmp_path):
    folder = tmp_path / "model"
    save_random(folder, (0, 4), text=True, hidden_size=32, hash_layers=1)
    first = fingerprint(folder, "fp8", "float32")
    assert fingerprint(folder, "fp8", "float32") == first
    seen = {first, fingerprint(folder, "float32", "float32"), fingerprint(folder, "fp8float32")}
    weights = next(folder.glob("*.safetensors"))
    for path in (folder / "config.json", folder / "tokenizer.json", weights):
        content = path.read_bytes()
        path.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
        seen.add(fingerprint(folder, "fp8", "float32"))
        path.write_bytes(content)
    weights.rename(weights.with_name("other.safetensors"))
    seen.add(fingerprint(folder, "fp8", "float32"))
    assert len(seen) == 7


def test_a_large_file_is_sampled_all_over(tmp_path, monkeypatch):
    monkeypatch.setattr("dsv4chat.runtime.fingerprint.WHOLE_BYTES", 1000)
    monkeypatch.setattr("dsv4chat.runtime.fingerprint.SAMPLE_BYTES", 100)
    path = tmp_path / "model.safetensors"
    content = bytearray(random.Random(5).randbytes(100_000))
    content[:8] = struct.pack("<Q", 500)
    path.write_bytes(content)
    first = fingerprint(tmp_path)
    for place in (20, 507, 99_999, 50_000, 100_000 // 63 * 7):
        region = slice(place // 1700 * 1700, place // 1700 * 1700 + 1700)
        changed = bytearray(content)
        changed[region] = bytes(len(changed[region]))
        changed[:8] = content[:8]
        path.write_bytes(changed)
        assert fingerprint(tmp_path) != first
