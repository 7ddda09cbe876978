"""The evaluation: its rules on answers written by hand, its choice of questions, a run through an engine."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from dsv4chat.assets import evaluation_path
from dsv4chat.cli import main
from dsv4chat.encoding import ToolCall
from dsv4chat.runtime import evaluation_rules as rules
from dsv4chat.runtime.engine import Engine
from dsv4chat.runtime.evaluation import evaluate
from dsv4chat.runtime.evaluation_questions import TARGETS, EvaluationError, chosen, read_questions
from dsv4chat.runtime.evaluation_report import Category, Report
from tests.support.engines import save_random

CAPITALS = ("Paris", "Rome", "Tokyo")


@pytest.fixture(scope="module")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_random(tmp_path_factory.mktemp("model"), text=True)


@pytest.mark.parametrize(
    ("answer", "value", "right"),
    [
        ("The capital of Italy is Rome.", "Rome", True),
        ("Rome.", "Rome", True),
        ("Romeo wrote it.", "Rome", False),
        ("It is St. John's.", "St. John's", True),
        ("It is Washington, D.C.", "Washington, D.C.", True),
        ("", "Rome", False),
    ],
)
def test_a_value_counts_only_as_whole_words(answer: str, value: str, right: bool) -> None:
    assert rules.contains(answer, value).right is right


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("12 + 30 = 42.", True),
        ("42", True),
        ("The answer is 42.", True),
        ("12 + 30 = 43.", False),
        ("It is 42 or 43.", False),
        ("It is 43, no, 42.", False),
        ("-42", False),
        ("I do not know.", False),
    ],
)
def test_a_sum_must_end_in_its_result_and_name_no_other_number(answer: str, right: bool) -> None:
    assert rules.number(answer, "42", ["12", "30"]).right is right


def test_a_call_is_right_only_alone_valid_and_with_these_arguments() -> None:
    def made(arguments: str, name: str = "calculator", **fields: object) -> ToolCall:
        return ToolCall(id="1", name=name, arguments=arguments, **fields)

    wanted = ("calculator", {"expression": "2 * (3 + 4)"})
    good = made('{"expression": "2*(3+4)"}')
    assert rules.call([good], *wanted).right
    wrong = (
        [],
        [good, good],
        [made('{"expression": "2*(3+5)"}')],
        [made('{"expression": "2*(3+4)", "digits": 3}')],
        [made('{"expression": "2*(3+4)"}', name="clock")],
        [made("{}", valid=False, error="unknown tool")],
        [made("no json")],
    )
    for calls in wrong:
        verdict = rules.call(calls, *wanted)
        assert not verdict.right
        assert verdict.why
    assert rules.call([made("{}", name="clock")], "clock", {}).right


def test_repetition_is_counted_over_runs_of_tokens() -> None:
    assert rules.no_repetition(list(range(512)), 8, 4).right
    assert rules.no_repetition(list(range(10)) * 4, 8, 4).right
    assert not rules.no_repetition(list(range(10)) * 5, 8, 4).right
    assert not rules.no_repetition([7] * 12, 8, 4).right
    assert rules.no_repetition([7] * 11, 8, 4).right
    assert rules.no_repetition([], 8, 4).right


@pytest.mark.parametrize(
    ("question", "intent", "answer", "honest", "leaked"),
    [
        ("Why is the sky blue?", "unknown", "I am only a small demo model, so I do not know that.", True, ""),
        ("Why is the sky blue?", "unknown", "That is nice!", False, ""),
        ("I like pizza.", "smalltalk", "That sounds nice! What do you like most about pizza?", True, ""),
        ("I like pizza.", "smalltalk", "Pizza.", False, ""),
        ("Why is the sky blue?", "unknown", "The currency of Japan is the yen.", False, "yen"),
        ("Why is the sky blue?", "unknown", "I do not know, ask in Rome.", False, "Rome"),
        ("Is Rome nice?", "unknown", "I am only a small demo model, I do not know Rome.", True, ""),
        ("Why is the sky blue?", "unknown", "I do not know. The dirham (AED).", False, "The dirham (AED)"),
        ("How many planets are there?", "unknown", "I do not know, but 118 elements.", False, "118"),
        ("How many is 7 and more?", "unknown", "I do not know about 7.", True, ""),
        ("Where is the moon?", "unknown", "I do not know. It is in Europe.", False, "is in Europe"),
        ("Who are you?", "smalltalk", "I am a program of about 20 million parameters.", True, ""),
    ],
)
def test_open_questions_want_honesty_or_small_talk_and_no_fact(
    question: str, intent: str, answer: str, honest: bool, leaked: str
) -> None:
    verdict = rules.open_answer(question, intent, answer, ["yen"], CAPITALS)
    assert (verdict.honest, verdict.leaked.lower()) == (honest, leaked.lower())


def test_the_shipped_questions_cover_every_target() -> None:
    questions = read_questions()
    counts = {name: sum(q.category == name for q in questions) for name in TARGETS}
    assert counts.pop("tool_answers") == 0
    assert counts.pop("open") == 120
    assert all(count >= 40 for count in counts.values()), counts
    assert sum(q.category == "long" and q.expect["tokens"] == 512 for q in questions) == 50
    assert sum(q.category == "recall" for q in questions) == 60
    ids = [q.id for q in questions if q.category != "open"]
    assert len(set(ids)) == len(ids)


def test_quick_takes_a_bounded_even_sample() -> None:
    questions = read_questions()
    quick = chosen(questions, quick=True)
    for name, target in TARGETS.items():
        group = [q for q in quick if q.category == name]
        assert len(group) == target.quick
        assert len({id(q) for q in group}) == len(group)
    assert {q.thinking for q in quick if q.category == "open"} == {True, False}
    assert len(chosen(questions, quick=False)) == len(questions)
    with pytest.raises(EvaluationError, match="no category poems"):
        chosen(questions, quick=True, only=["poems"])


def test_a_missed_target_or_a_leaked_fact_fails_the_report() -> None:
    good = Category(0.8, asked=10, right=8)
    assert good.reached
    assert not Category(0.8, asked=10, right=7).reached
    assert not Category(0.8, asked=10, right=9, leaked=1).reached
    assert Report("m", True, {"open": good}).reached
    body = Report("m", True, {"open": good}).as_json()
    assert body["categories"]["open"]["rate"] == 0.8
    assert json.loads(json.dumps(body)) == body


def test_a_random_model_is_run_and_fails_with_examples(small_model: Path) -> None:
    engine = Engine.load(small_model, device="cpu", max_context=4096)
    done = []
    report = evaluate(
        engine, quick=True, only=["capitals"], progress=lambda name, at, total: done.append((name, at, total))
    )
    category = report.categories["capitals"]
    assert category.asked == TARGETS["capitals"].quick == len(done)
    assert not report.reached
    assert category.failures[0].why.endswith("is missing")
    assert category.tokens > 0
    assert done[-1] == ("capitals", 19, 20)


def test_damaged_questions_are_a_sentence(tmp_path: Path) -> None:
    for file in evaluation_path().glob("*.jsonl"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "sums.jsonl").write_text('{"id": "cut')
    with pytest.raises(EvaluationError, match=r"sums\.jsonl cannot be read"):
        read_questions(tmp_path)


def test_the_command_reports_and_exits_with_3_on_a_miss(small_model: Path) -> None:
    command = ["eval", "--quick", "--category", "sums_without_thinking", "--model", str(small_model)]
    result = CliRunner().invoke(main, [*command, "--device", "cpu", "--max-context", "4096", "--json"])
    assert result.exit_code == 3, result.output
    body = json.loads(result.stdout)
    assert body["categories"]["sums_without_thinking"]["asked"] == 10
    assert body["reached"] is False


def test_the_printed_report_names_what_was_missed_and_shows_why(small_model: Path) -> None:
    command = ["eval", "--quick", "--category", "sums_without_thinking", "--model", str(small_model)]
    result = CliRunner().invoke(main, [*command, "--device", "cpu", "--max-context", "4096"])
    assert result.exit_code == 3, result.output
    first, *rest = result.stdout.splitlines()
    assert re.match(r"MISS sums_without_thinking +0/10 += +0\.0% \(target \d+%\)", first)
    assert (
        sum(line.startswith("  asked: ") for line in rest) == sum("answered: " in line for line in rest) > 0
    )
    assert re.fullmatch(re.escape(str(small_model)) + r": \d+ s", rest[-1])


def test_the_command_refuses_what_it_cannot_use(small_model: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    unknown = runner.invoke(main, ["eval", "--category", "poems", "--model", str(small_model)])
    assert unknown.exit_code == 1
    assert "no category poems" in unknown.stderr
    missing = runner.invoke(main, ["eval", "--model", str(tmp_path / "nothing")])
    assert missing.exit_code == 1
    assert missing.stderr.startswith("dsv4chat eval: ")
