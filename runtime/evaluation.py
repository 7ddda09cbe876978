"""The held-out evaluation: questions from assets/evaluation through an engine, judged by rules.

    report = evaluate(Engine.load("demo"), quick=True)
    report.categories["capitals"].rate

The questions' values (number pairs, names, expressions) and wordings do not occur in the training data;
`recall` asks for unseen names in plain words, `recall_reworded` for the same names in unseen ones.
Greedy sampling, but for `long`, which measures repetition at temperature 0.7.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dsv4chat.assets import evaluation_path
from dsv4chat.encoding import (
    CompletionParser,
    Conversation,
    Message,
    Profile,
    Tokenizer,
    conversation_from_request,
    render,
)
from dsv4chat.runtime import evaluation_rules as rules
from dsv4chat.runtime.engine import Engine
from dsv4chat.runtime.errors import EngineError
from dsv4chat.runtime.protocol import SamplingParams

FILES = ("capitals", "sums", "recall", "calculator", "clock", "long", "open_questions")
LONGEST_ANSWER = 256
EXAMPLES = 5


class EvaluationError(EngineError):
    """The questions are missing or damaged, or a category has no name."""


@dataclass(frozen=True, slots=True)
class Target:
    """rate: the part of right answers to be reached, 0: only measured. quick: how many `--quick` asks."""

    rate: float
    quick: int


TARGETS = {
    "capitals": Target(0.95, 20),
    "sums": Target(0.95, 20),
    "sums_without_thinking": Target(0.90, 10),
    "recall": Target(0.90, 8),
    "recall_reworded": Target(0.0, 4),
    "calculator": Target(0.95, 10),
    "clock": Target(0.95, 10),
    "tool_answers": Target(0.90, 0),
    "long": Target(1.0, 4),
    "open": Target(0.80, 20),
}
"""`tool_answers` follows from the tool questions: the answer once the result is there."""


@dataclass(frozen=True, slots=True)
class Question:
    """One line of a file. expect: kind (contains, number, call, no_repetition, open) and its values."""

    id: str
    category: str
    messages: list[dict[str, Any]]
    thinking: bool
    expect: dict[str, Any]
    tools: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Failure:
    """One wrong answer: what was asked, what came, why it is wrong."""

    id: str
    question: str
    reasoning: str
    answer: str
    why: str


@dataclass(slots=True)
class Category:
    """asked, right: counts. leaked: open answers with a value of the fact tables; none is allowed."""

    target: float
    asked: int = 0
    right: int = 0
    leaked: int = 0
    tokens: int = 0
    seconds: float = 0.0
    failures: list[Failure] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Part of right answers, 0 to 1."""
        return self.right / self.asked if self.asked else 0.0

    @property
    def reached(self) -> bool:
        return self.rate >= self.target and not self.leaked


@dataclass(slots=True)
class Report:
    """All categories in the order of TARGETS. tokens: generated ones; seconds: wall clock."""

    model: str
    quick: bool
    categories: dict[str, Category]
    seconds: float = 0.0

    @property
    def reached(self) -> bool:
        return all(category.reached for category in self.categories.values())

    def as_json(self) -> dict[str, Any]:
        """Plain values; each category with its rate and whether the target is reached."""
        categories = {
            name: asdict(c) | {"rate": round(c.rate, 4), "reached": c.reached}
            for name, c in self.categories.items()
        }
        return {
            "model": self.model,
            "quick": self.quick,
            "seconds": round(self.seconds, 1),
            "reached": self.reached,
            "categories": categories,
        }


@dataclass(frozen=True, slots=True)
class _Said:
    message: Message
    ids: list[int]


Progress = Callable[[str, int, int], None]


def read_questions(folder: Path | None = None) -> list[Question]:
    """All questions of `folder` (default: the shipped ones); the open ones with and without thinking."""
    folder = folder or evaluation_path()
    questions = []
    for name in FILES:
        for line in _lines(folder / f"{name}.jsonl"):
            if name == "open_questions":
                messages = [{"role": "user", "content": line["question"]}]
                expect = {"kind": "open", "intent": line["intent"], "forbidden": line["forbidden"]}
                odd = int(line["id"].rpartition("-")[2]) % 2 == 1
                for thinking in (odd, not odd):
                    questions.append(Question(line["id"], "open", messages, thinking, expect))
            else:
                questions.append(Question(**line))
    return questions


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        for line in path.read_text("utf-8").splitlines():
            yield json.loads(line)
    except (OSError, ValueError) as error:
        raise EvaluationError(f"The questions in {path} cannot be read: {error}; install again.") from error


def chosen(questions: Sequence[Question], quick: bool, only: Sequence[str] = ()) -> list[Question]:
    """The questions to ask, by category in the order of TARGETS; `quick` takes a few, evenly spaced."""
    unknown = [name for name in only if name not in TARGETS]
    if unknown:
        raise EvaluationError(f"There is no category {unknown[0]}; choose from {', '.join(TARGETS)}.")
    picked = []
    for name, target in TARGETS.items():
        if only and name not in only:
            continue
        group = [q for q in questions if q.category == name]
        count = min(target.quick, len(group)) if quick else len(group)
        picked += [group[i * len(group) // count] for i in range(count)] if count else []
    return picked


def evaluate(
    engine: Engine,
    *,
    quick: bool = False,
    only: Sequence[str] = (),
    profile: Profile = Profile.PREVIEW,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """Ask and judge. Raises EvaluationError for bad questions, TokenizerMissingError without a tokenizer.

    progress is called with (category, questions done, all) before each question.
    """
    tokenizer = engine.require_tokenizer()
    folder = folder or evaluation_path()
    questions = chosen(read_questions(folder), quick, only)
    values = [line["value"] for line in _lines(folder / "fact_values.jsonl")]
    report = Report(engine.info.model, quick, {})
    started = time.monotonic()
    for done, question in enumerate(questions):
        if progress:
            progress(question.category, done, len(questions))
        _ask(engine, tokenizer, profile, question, values, report)
    engine.drop("evaluation")
    report.categories = {name: report.categories[name] for name in TARGETS if name in report.categories}
    report.seconds = time.monotonic() - started
    return report


def _ask(
    engine: Engine,
    tokenizer: Tokenizer,
    profile: Profile,
    question: Question,
    values: Sequence[str],
    report: Report,
) -> None:
    """Ask one question and count it; after a right tool call, ask for the answer from its result as well."""
    started = time.monotonic()
    body: dict[str, Any] = {"messages": question.messages, "tools": question.tools}
    body["thinking"] = {"type": "enabled" if question.thinking else "disabled"}
    if not question.tools:
        del body["tools"]
    conversation = conversation_from_request(body)
    said = _generate(engine, tokenizer, profile, conversation, question.expect)
    verdict, leaked = _judge(question, said, values)
    _count(report, question.category, question, said, verdict, leaked, started)
    then = question.expect.get("then")
    if question.expect["kind"] == "call" and verdict.right and then:
        started = time.monotonic()
        result = Message("tool", then["result"], tool_call_id=said.message.tool_calls[0].id)
        longer = replace(conversation, messages=(*conversation.messages, said.message, result))
        said = _generate(engine, tokenizer, profile, longer, question.expect)
        verdict = rules.contains(rules.answer_of(said.message), then["contains"])
        _count(report, "tool_answers", question, said, verdict, "", started)


def _generate(
    engine: Engine,
    tokenizer: Tokenizer,
    profile: Profile,
    conversation: Conversation,
    expect: Mapping[str, Any],
) -> _Said:
    encoded = tokenizer.encode(render(conversation, profile))
    params = SamplingParams(
        temperature=expect.get("temperature", 0.0),
        seed=expect.get("seed", 0),
        max_tokens=expect.get("tokens", LONGEST_ANSWER),
    )
    parser = CompletionParser(conversation.thinking, tokenizer=tokenizer, tools=conversation.tools or None)
    ids = []
    for token in engine.generate(
        encoded.ids, params, conversation="evaluation", boundaries=encoded.boundaries
    ):
        ids.append(token.id)
        parser.push(token.text, token.id)
    parser.finish(engine.last_turn.reason, engine.last_turn.tail)
    return _Said(parser.message(), ids)


def _judge(question: Question, said: _Said, values: Sequence[str]) -> tuple[rules.Verdict, str]:
    """(the verdict, a leaked fact or "")."""
    expect, answer = question.expect, rules.answer_of(said.message)
    if expect["kind"] == "contains":
        return rules.contains(answer, expect["value"]), ""
    if expect["kind"] == "number":
        return rules.number(answer, expect["value"], expect["given"]), ""
    if expect["kind"] == "call":
        return rules.call(said.message.tool_calls, expect["name"], expect["arguments"]), ""
    if expect["kind"] == "no_repetition":
        return rules.no_repetition(said.ids, expect["gram"], expect["times"]), ""
    if expect["kind"] == "open":
        asked = question.messages[-1]["content"]
        found = rules.open_answer(asked, expect["intent"], answer, expect["forbidden"], values)
        why = (
            f"names {found.leaked}"
            if found.leaked
            else ""
            if found.honest
            else "neither honest nor small talk"
        )
        return rules.Verdict(found.honest and not found.leaked, why), found.leaked
    raise EvaluationError(f"Question {question.id} expects {expect['kind']!r}, which no rule judges.")


def _count(
    report: Report,
    name: str,
    question: Question,
    said: _Said,
    verdict: rules.Verdict,
    leaked: str,
    started: float,
) -> None:
    category = report.categories.setdefault(name, Category(TARGETS[name].rate))
    category.asked += 1
    category.right += verdict.right
    category.leaked += bool(leaked)
    category.tokens += len(said.ids)
    category.seconds += time.monotonic() - started
    if not verdict.right and len(category.failures) < EXAMPLES:
        message = said.message
        calls = "".join(f" {call.name}({call.arguments})" for call in message.tool_calls)
        asked = question.messages[-1]["content"]
        answer = rules.answer_of(message) + calls
        category.failures.append(Failure(question.id, asked, message.reasoning or "", answer, verdict.why))
