"""The questions of the held-out evaluation: what is asked, how many of them, and what is to be reached."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsv4chat.assets import evaluation_path
from dsv4chat.runtime.errors import EngineError

FILES = ("capitals", "sums", "recall", "calculator", "clock", "long", "open_questions")


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


def read_questions(folder: Path | None = None) -> list[Question]:
    """All questions of `folder` (default: the shipped ones); the open ones with and without thinking."""
    folder = folder or evaluation_path()
    questions = []
    for name in FILES:
        for line in read_lines(folder / f"{name}.jsonl"):
            if name == "open_questions":
                messages = [{"role": "user", "content": line["question"]}]
                expect = {"kind": "open", "intent": line["intent"], "forbidden": line["forbidden"]}
                odd = int(line["id"].rpartition("-")[2]) % 2 == 1
                for thinking in (odd, not odd):
                    questions.append(Question(line["id"], "open", messages, thinking, expect))
            else:
                questions.append(Question(**line))
    return questions


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a .jsonl file. Raises EvaluationError."""
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
