"""The held-out evaluation: questions from assets/evaluation through an engine, judged by rules.

    report = evaluate(Engine.load("demo"), quick=True)
    report.categories["capitals"].rate

The questions' values (number pairs, names, expressions) and wordings do not occur in the training data;
`recall` asks for unseen names in plain words, `recall_reworded` for the same names in unseen ones.
Greedy sampling, but for `long`, which measures repetition at temperature 0.7.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from dsv4chat.runtime.evaluation_questions import (
    TARGETS,
    EvaluationError,
    Question,
    chosen,
    read_lines,
    read_questions,
)
from dsv4chat.runtime.evaluation_report import Category, Failure, Report
from dsv4chat.runtime.protocol import SamplingParams

LONGEST_ANSWER = 256
EXAMPLES = 5  # of wrong answers, kept with each category


@dataclass(frozen=True, slots=True)
class _Said:
    message: Message
    ids: list[int]


Progress = Callable[[str, int, int], None]


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
    values = [line["value"] for line in read_lines(folder / "fact_values.jsonl")]
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
