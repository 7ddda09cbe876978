"""The training data: right by arithmetic and fact tables, in the exact prompt format, nothing held out."""

import json
import random
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dsv4chat.assets import demo_path, evaluation_path
from dsv4chat.assets.training.data import held_out
from dsv4chat.assets.training.data.arithmetic import arithmetic
from dsv4chat.assets.training.data.build import LONGEST, SAMPLE_FACTS, build, parse
from dsv4chat.assets.training.data.calculator_chat import draw_expression
from dsv4chat.assets.training.data.chat import Call, Exchange, Step, request
from dsv4chat.assets.training.data.checks import LeakCheck, LeakError
from dsv4chat.assets.training.data.compose import Composer, Sample
from dsv4chat.assets.training.data.corpus import Corpus, CorpusError, document, load_corpus
from dsv4chat.assets.training.data.digits import digits_of_difference, digits_of_sum
from dsv4chat.assets.training.data.facts import Facts, load_facts
from dsv4chat.assets.training.data.stories import story_text
from dsv4chat.assets.training.data.tools import CALCULATOR, CLOCK
from dsv4chat.assets.training.data.unknown import unknown
from dsv4chat.encoding import CompletionParser, Profile, Tokenizer, conversation_from_request, render


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts(SAMPLE_FACTS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus")
    build(parse(["--smoke", "--out", str(path)]))
    return path


@pytest.fixture(scope="module")
def corpus(folder: Path) -> Corpus:
    return load_corpus(folder)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_folder(demo_path())


def conversations(corpus: Corpus) -> list[tuple[np.ndarray, np.ndarray]]:
    count = len(corpus.conv_offsets) - 1
    return [
        (
            document(corpus.conv_ids, corpus.conv_offsets, i),
            document(corpus.conv_mask, corpus.conv_offsets, i),
        )
        for i in range(count)
    ]


def test_conversations_are_whole_and_stay_within_a_training_row(corpus: Corpus, tokenizer: Tokenizer) -> None:
    assert len(corpus.conv_offsets) > 250
    for ids, mask in conversations(corpus):
        assert ids[0] == tokenizer.bos_id
        assert ids[-1] == tokenizer.eos_id
        assert mask[-1] == 1
        assert len(ids) <= 2040
        assert len(ids) == len(mask)


def test_the_mask_covers_what_follows_an_opened_turn_up_to_its_end(
    corpus: Corpus, tokenizer: Tokenizer
) -> None:
    title = tokenizer.control_id("<｜title｜>")
    silent_turns = 0
    for ids, mask in conversations(corpus):
        turns = []  # (thinking, ids of the turn to be said, their mask)
        speaking, opener = False, False
        for number, spoken in zip(ids.tolist(), mask.tolist(), strict=True):
            if speaking and not opener:
                turns[-1][1].append(spoken)
            else:
                assert not spoken
            if number == tokenizer.assistant_id:
                speaking = opener = True
            elif opener:
                assert number in (tokenizer.think_start_id, tokenizer.think_end_id)
                turns.append((number == tokenizer.think_start_id, []))
                opener = False
            elif number == title:
                turns.append((False, []))
                speaking = True
            elif number in (tokenizer.eos_id, tokenizer.user_id):
                speaking = False
        for thinking, spoken in turns:
            assert len(set(spoken)) == 1
            if not spoken[0]:
                # An earlier answer of a thinking conversation, whose dropped reasoning it needed.
                assert not thinking
                silent_turns += 1
                assert turns[-1][0]
        assert all(turns[-1][1])
    assert silent_turns > 0


def test_pretraining_documents_end_with_eos(corpus: Corpus, tokenizer: Tokenizer) -> None:
    for i in range(len(corpus.pretrain_offsets) - 1):
        ids = document(corpus.pretrain_ids, corpus.pretrain_offsets, i)
        assert ids[-1] == tokenizer.eos_id
        assert tokenizer.bos_id not in ids


def test_the_same_seed_builds_the_same_bytes_and_another_seed_others(folder: Path, tmp_path: Path) -> None:
    build(parse(["--smoke", "--out", str(tmp_path / "again")]))
    build(parse(["--smoke", "--out", str(tmp_path / "other"), "--seed", "6"]))
    first = json.loads((folder / "corpus.json").read_text())["arrays"]
    assert json.loads((tmp_path / "again" / "corpus.json").read_text())["arrays"] == first
    other = json.loads((tmp_path / "other" / "corpus.json").read_text())["arrays"]
    assert other["conv_ids"]["sha256"] != first["conv_ids"]["sha256"]


def test_a_damaged_or_missing_array_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="build the corpus first"):
        load_corpus(tmp_path)
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    whole = (tmp_path / "conv_mask.bin.xz").read_bytes()
    (tmp_path / "conv_mask.bin.xz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorpusError, match=r"conv_mask\.bin\.xz"):
        load_corpus(tmp_path)
    (tmp_path / "conv_mask.bin.xz").write_bytes((folder / "heldout_mask.bin.xz").read_bytes())
    with pytest.raises(CorpusError, match="does not match its checksum"):
        load_corpus(tmp_path)


def test_ids_equal_those_of_the_encoder(facts: Facts, corpus: Corpus, tokenizer: Tokenizer) -> None:
    # The first conversations of the smoke corpus, rendered and tokenised by the encoder alone.
    samples = Composer(facts, random.Random("5 training")).samples(80)
    stored = iter(conversations(corpus))
    for sample in samples:
        conversation = conversation_from_request(sample.body)
        task = "title" if sample.task_text else None
        ids = tokenizer.encode(render(conversation, Profile.PREVIEW, task=task, open_turn=False)).ids
        if task:
            ids += [*tokenizer.encode_text(sample.task_text), tokenizer.eos_id]
        if len(ids) <= LONGEST:
            assert next(stored)[0].tolist() == ids


def test_what_the_model_is_to_say_parses_back_to_the_message(facts: Facts, tokenizer: Tokenizer) -> None:
    # Every turn that ends a conversation, read back by the parser that reads the model's own output.
    for sample in Composer(facts, random.Random(11)).samples(150):
        last = sample.body["messages"][-1]
        thinking = sample.body["thinking"]["type"] == "enabled"
        text = f"{last['reasoning_content']}</think>{last['content']}" if thinking else last["content"]
        parser = CompletionParser(thinking)
        parser.push(text)
        parser.finish("stop")
        assert parser.message().content == last["content"]
        assert (parser.message().reasoning or "") == last.get("reasoning_content", "")


def test_every_kind_and_both_modes_occur(facts: Facts) -> None:
    samples = list(Composer(facts, random.Random(3)).samples(1500))
    kinds = Counter(sample.kind for sample in samples)
    assert set(kinds) == {"single", "multi", "recall", "tools", "long", "title"}
    assert min(kinds.values()) > 30
    thinking = sum(sample.body["thinking"]["type"] == "enabled" for sample in samples)
    assert 0.4 < thinking / len(samples) < 0.6
    assert any(sample.body.get("reasoning_effort") == "max" for sample in samples)
    assert any(sample.body["messages"][0]["role"] == "system" for sample in samples)


def test_sums_and_differences_worked_by_digits_are_right() -> None:
    rng = random.Random(1)
    for _ in range(2000):
        x, y = rng.randint(0, 10 ** rng.randint(1, 5) - 1), rng.randint(0, 10 ** rng.randint(1, 5) - 1)
        assert digits_of_sum(x, y, rng).endswith(f"So {x} + {y} = {x + y}.")
        x, y = max(x, y), min(x, y)
        assert digits_of_difference(x, y, rng).endswith(f"So {x} - {y} = {x - y}.")


def test_every_equation_in_arithmetic_holds() -> None:
    rng = random.Random(2)
    found = 0
    for _ in range(3000):
        exchange = arithmetic(rng)
        for text in (exchange.answer, exchange.thought, exchange.aloud):
            for left, right in re.findall(r"((?:\d+ [-+*] )+\d+) = (-?\d+)(?![\d*])", text):
                before = text[: text.index(left)].rstrip()
                if before[-1:] in "+-*/" or f"{left} = {right}, remainder" in text:
                    continue
                found += 1
                assert eval(left) == int(right), text
    assert found > 3000


def test_calculator_results_are_those_of_exact_fractions() -> None:
    rng = random.Random(3)
    for _ in range(1500):
        expression, result = draw_expression(rng)
        if "**" in expression:
            assert eval(expression) == int(result)
            continue
        exact = eval(
            re.sub(r"\d+(\.\d+)?", lambda m: f"Fraction('{m.group()}')", expression), {"Fraction": Fraction}
        )
        assert abs(Fraction(result) - exact) <= abs(exact) * Fraction(1, 10**9) + Fraction(1, 10**9)


def test_answers_about_countries_come_from_the_table(facts: Facts) -> None:
    capitals = {country.name: country.capital for country in facts.countries}
    rng, seen = random.Random(4), 0
    composer = Composer(facts, rng)
    for _ in range(6000):
        exchange = composer.plain()
        match = re.fullmatch(r"The capital of (.+?) is (.+?)\.", exchange.answer)
        if match:
            seen += 1
            assert capitals[match.group(1)] == match.group(2)
    assert seen > 100


def test_questions_outside_the_data_never_get_a_fact(facts: Facts) -> None:
    values = [country.capital for country in facts.countries]
    rng = random.Random(5)
    questions = set()
    for _ in range(3000):
        exchange = unknown(facts, rng)
        questions.add(exchange.user)
        assert "small demo model" in exchange.answer
        for value in values:
            assert not re.search(rf"\b{value}\b", exchange.answer) or value in exchange.user
    assert len(questions) > 2500


def test_no_sentence_pattern_comes_twice_in_a_story(facts: Facts) -> None:
    rng = random.Random(6)
    for _ in range(50):
        text = story_text(facts, rng, "fox", 60)
        sentences = re.split(r"(?<=[.!?])\s+", text)
        assert max(Counter(sentences).values()) <= 2
        assert "{" not in text


def _sample(user: str, answer: str = "Yes.", steps: tuple[Step, ...] = ()) -> Sample:
    return Sample("single", request([Exchange(user, answer, steps=steps)], thinking=False))


def test_the_leak_check_finds_values_and_phrasings_that_are_held_out() -> None:
    check = LeakCheck(["Zorbani"], ["Why is the sky blue?"])
    x, y = next((x, y) for x in range(10, 99) for y in range(10, 99) if held_out.is_held_sum(x, y))
    rng = random.Random(7)
    held, result = draw_expression(rng, held=True)
    step = Step("", (Call("calculator", {"expression": held}, result),))
    leaks = (
        _sample(f"What is {x} + {y}?"),
        _sample("Hi", f"{y}+{x} = {x + y}"),
        _sample(f"The sum of {x} and {y}?"),
        _sample("My name is Zorbani."),
        _sample("Sum?", steps=(step,)),
        _sample("Do you happen to know the capital of Peru?"),
        _sample("Good day, Ann speaking here."),
    )
    for sample in leaks:
        with pytest.raises(LeakError):
            check.look(sample)
    assert not check.look(_sample("why is the sky BLUE"))
    assert check.look(_sample("What is the capital of Peru?", "The capital of Peru is Lima."))


def test_every_evaluation_question_is_of_held_out_values() -> None:
    def lines(name: str) -> list[dict]:
        return [json.loads(line) for line in (evaluation_path() / f"{name}.jsonl").read_text().splitlines()]

    counts = {n: len(lines(n)) for n in ("capitals", "sums", "recall", "calculator", "clock", "long")}
    assert all(count >= 40 for count in counts.values()), counts
    for line in lines("sums"):
        assert held_out.is_held_sum(*map(int, line["expect"]["given"]))
    for line in lines("recall"):
        assert held_out.is_held_name(line["expect"]["value"])
    for line in lines("calculator"):
        assert held_out.is_held_expression(line["expect"]["arguments"]["expression"])
    for line in (*lines("calculator"), *lines("clock")):
        tools = [tool["function"] for tool in line["tools"]]
        assert sorted(tools, key=lambda t: t["name"]) == [CALCULATOR, CLOCK]
    assert len(lines("open_questions")) == 60


def test_recall_questions_stand_about_500_tokens_after_the_name(tokenizer: Tokenizer) -> None:
    for line in map(json.loads, (evaluation_path() / "recall.jsonl").read_text().splitlines()):
        body = {"messages": line["messages"], "thinking": {"type": "disabled"}}
        ids = tokenizer.encode(render(conversation_from_request(body), Profile.PREVIEW)).ids
        name = line["expect"]["value"]
        said = next(k for k in range(len(ids)) if name in tokenizer.decode(ids[:k]))
        # The model repeats the name once, when it says hello.
        assert tokenizer.decode(ids[said:]).count(name) == 1
        assert 400 <= len(ids) - said <= 660
