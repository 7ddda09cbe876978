"""The pruned tokenizer: same family as DeepSeek's, exact round trips, every control token, single digits."""

import json
import random
import re

import pytest
import tokenizers

from dsv4chat.assets import demo_path
from dsv4chat.assets.training.data.tools import CALCULATOR, CLOCK
from dsv4chat.assets.training.tokenizer import PruningError, count_tokens, prune, write_tokenizer
from dsv4chat.encoding import Profile, Tokenizer, conversation_from_request, render, template
from tests.support.deepseek import REAL_TOKENIZER

TEXTS = ("The capital of France is Paris.", "What is 47 + 38? It is 85.", "the cat and the dog and the bird")


@pytest.fixture(scope="module")
def real() -> dict:
    return json.loads((REAL_TOKENIZER / "tokenizer.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def shipped() -> dict:
    return json.loads((demo_path() / "tokenizer.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def pruned(real: dict) -> dict:
    return prune(real, count_tokens(real, TEXTS), 400)


def ids_of(definition: dict) -> list[int]:
    added = {token["content"]: token["id"] for token in definition["added_tokens"]}
    return sorted((definition["model"]["vocab"] | added).values())


def random_text(rng: random.Random) -> str:
    kinds = (
        lambda: chr(rng.randint(32, 126)),
        lambda: chr(rng.randint(0x80, 0x2FFF)),
        lambda: chr(rng.randint(0x4E00, 0x9FFF)),
        lambda: chr(rng.randint(0x1F300, 0x1FAFF)),
        lambda: rng.choice(("\n", "\r\n", "\t", "  ", " ", "\u200d", "\x00", "é", "e\u0301")),
        lambda: rng.choice((" the", " capital", "12345", "<think>", "</think>", "<｜User｜>", "｜DSML｜")),
    )
    return "".join(rng.choice(kinds)() for _ in range(rng.randint(0, 60)))


def test_shipped_tokenizer_has_the_model_s_ids_without_gaps(shipped: dict) -> None:
    assert ids_of(shipped) == list(range(8190))


def test_every_control_token_of_the_real_one_is_kept_and_no_placeholder(real: dict, shipped: dict) -> None:
    wanted = [t["content"] for t in real["added_tokens"] if not re.search("place.holder", t["content"])]
    flags = {t["content"]: (t["special"], t["normalized"]) for t in real["added_tokens"]}
    assert [t["content"] for t in shipped["added_tokens"]] == wanted
    assert all((t["special"], t["normalized"]) == flags[t["content"]] for t in shipped["added_tokens"])


def test_bos_eos_and_pad_come_first_and_the_rest_keeps_the_real_order(real: dict, shipped: dict) -> None:
    old, new = real["model"]["vocab"], shipped["model"]["vocab"]
    assert sorted(new, key=new.__getitem__)[:2] == [template.BOS, template.EOS]
    kept = sorted(new, key=new.__getitem__)[3:]
    assert kept == sorted(kept, key=old.__getitem__)


def test_all_256_bytes_survive_and_no_entry_holds_two_digits(shipped: dict) -> None:
    vocab = shipped["model"]["vocab"]
    letters = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    assert len(letters) == 256
    assert all(letter in vocab for letter in letters)
    assert not [token for token in vocab if re.search(r"\d", token) and len(token) > 1]


def test_every_kept_entry_can_be_reached_by_the_kept_merges(shipped: dict) -> None:
    vocab = shipped["model"]["vocab"]
    reachable = {token for token in vocab if len(token) == 1}
    for merge in shipped["model"]["merges"]:
        left, right = merge.split(" ")
        assert left in reachable
        assert right in reachable
        reachable.add(left + right)
    special = {t["content"] for t in shipped["added_tokens"]}
    assert set(vocab) - reachable <= special


@pytest.mark.parametrize("seed", range(4))
def test_any_text_comes_back_exactly(seed: int) -> None:
    tokenizer = Tokenizer.from_folder(demo_path())
    rng = random.Random(seed)
    for _ in range(250):
        text = random_text(rng)
        ids = tokenizer.encode_text(text)
        assert tokenizer.decode(ids) == text
        assert not tokenizer.control_ids.intersection(ids)


def test_digits_are_single_tokens_that_never_join_their_neighbours() -> None:
    tokenizer = Tokenizer.from_folder(demo_path())
    for text in ("2026", " 47", "a1b22", "3.14", "(12+30)", "x = 007\n"):
        pieces = [tokenizer.token_text(i) for i in tokenizer.encode_text(text)]
        assert [p for p in pieces if re.search(r"\d", p)] == re.findall(r"\d", text)


def test_common_words_cost_one_token_and_the_tools_prompt_stays_affordable() -> None:
    tokenizer = Tokenizer.from_folder(demo_path())
    for word in (" capital", " demo", " model", " currency", " hundreds", " calculator"):
        assert len(tokenizer.encode_text(word)) == 1, word
    tools = [{"type": "function", "function": tool} for tool in (CALCULATOR, CLOCK)]
    body = {"messages": [{"role": "user", "content": "Hi"}], "tools": tools}
    prompt = render(conversation_from_request(body), Profile.PREVIEW)
    assert len(tokenizer.encode(prompt).ids) < 520


def test_pruning_is_deterministic_and_ids_are_dense(real: dict, pruned: dict, tmp_path) -> None:
    again = prune(real, count_tokens(real, reversed(TEXTS)), 400)
    assert pruned == again
    assert ids_of(pruned) == list(range(400))
    for name in ("one", "two"):
        write_tokenizer(tmp_path / name, pruned, {"model_max_length": 1})
    files = [(tmp_path / n / "tokenizer.json").read_bytes() for n in ("one", "two")]
    assert files[0] == files[1]


def test_frequent_tokens_are_kept_with_their_merge_ancestors(pruned: dict) -> None:
    vocab = pruned["model"]["vocab"]
    assert {"Ġthe", "Ġand"} <= set(vocab)
    assert "Ġcapital" in vocab or "Ġis" in vocab
    plain = tokenizers.Tokenizer.from_str(json.dumps(pruned | {"added_tokens": []}))
    for text in (*TEXTS, "ünïcödé 漢字 🦊\n\n  42"):
        assert plain.decode(plain.encode(text, add_special_tokens=False).ids, False) == text


def test_the_pruned_tokenizer_splits_like_the_real_one_where_all_pieces_survived(shipped: dict) -> None:
    whole = tokenizers.Tokenizer.from_file(str(REAL_TOKENIZER / "tokenizer.json"))
    small = Tokenizer.from_folder(demo_path())
    vocab = set(shipped["model"]["vocab"])
    checked = 0
    for text in ("What is the capital of France?", "I am only a small demo model.", "You are welcome!"):
        pieces = whole.encode(text, add_special_tokens=False).tokens
        if set(pieces) <= vocab:
            checked += 1
            assert [small.token_text(i) for i in small.encode_text(text)] == [
                p.replace("Ġ", " ") for p in pieces
            ]
    assert checked


def test_impossible_sizes_are_refused(real: dict) -> None:
    with pytest.raises(PruningError, match="too few"):
        prune(real, {}, 200)
    with pytest.raises(PruningError, match="asked for"):
        prune(real, {}, 200_000)
