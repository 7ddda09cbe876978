"""What must never be in the training data, looked for in the finished conversations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from . import held_out
from .compose import Sample

_SUM = re.compile(r"(?<![\d.+*/-])(?<![+*/,-] )\b(\d\d) ?(\+|plus|and) ?(\d\d)\b(?![\d.])")


class LeakError(Exception):
    """A held-out value or phrasing was found in the training data; the message shows it."""


class LeakCheck:
    """Looks at conversations one by one; `names` are the names, `questions` the open questions of the evaluation."""

    def __init__(self, names: Iterable[str], questions: Sequence[str]) -> None:
        self._names = frozenset(names)
        self._questions = frozenset(held_out.normal_form(q) for q in questions)

    def look(self, sample: Sample) -> bool:
        """False when the conversation happens to ask an open question of the evaluation, so is not to be used.

        Raises LeakError when it holds anything else that is held out, which no generator may produce.
        """
        for message in sample.body["messages"]:
            text = message["content"]
            self._sums(text)
            self._sums(message.get("reasoning_content", ""))
            leaked = self._names.intersection(re.findall(r"[A-Za-z]+", text)) if self._names else ()
            if leaked:
                raise LeakError(f"The held-out name {sorted(leaked)[0]} is in the training data: {text}")
            for call in message.get("tool_calls", ()):
                arguments = json.loads(call["function"]["arguments"])
                if "expression" in arguments and held_out.is_held_expression(arguments["expression"]):
                    raise LeakError(
                        f"The held-out expression {arguments['expression']} is in the training data."
                    )
            if message["role"] == "user":
                if held_out.is_held_phrasing(text):
                    raise LeakError(f"A held-out phrasing is in the training data: {text}")
                if len(text) < 160 and held_out.normal_form(text) in self._questions:
                    return False
        return True

    def _sums(self, text: str) -> None:
        if "+" in text or "plus" in text or " and " in text:
            for x, sign, y in _SUM.findall(text):
                if sign == "and" and len(re.findall(r"\d+", text)) > 2:
                    continue  # "the sum of 4, 18, 20 and 57" adds 57 to 42, not to 20
                if held_out.is_held_sum(int(x), int(y)) and re.search(
                    r"\d\s*=|sum|add|total|plus|\+", text, re.I
                ):
                    raise LeakError(f"The held-out sum {x} + {y} is in the training data: {text}")
