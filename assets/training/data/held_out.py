"""What the evaluation asks and the training data must never contain, decided by a hash of the value itself.

Training generators draw again when they meet a held-out value; the evaluation draws only held-out ones. Phrasings
held out for the evaluation are the lists below; no training frame may contain one (`build.py` checks it).
"""

from __future__ import annotations

import re
import zlib
from functools import cache


def _bucket(kind: str, value: str) -> int:
    return zlib.crc32(f"{kind}:{value}".encode()) % 1000


def is_held_sum(a: int, b: int) -> bool:
    """8 % of the unordered pairs of two-digit numbers are never added in the training data."""
    if not (10 <= a <= 99 and 10 <= b <= 99):
        return False
    return _bucket("sum", f"{min(a, b)}+{max(a, b)}") < 80


def is_held_name(name: str) -> bool:
    """6 % of all possible names are never used in the training data."""
    return _bucket("name", name) < 60


def is_held_expression(expression: str) -> bool:
    """6 % of all calculator expressions (compared without spaces) are never sent in the training data."""
    return _bucket("expression", expression.replace(" ", "")) < 60


CAPITAL_PHRASINGS = (
    "I need to know which city {country} is governed from. What is its capital?",
    "Quick quiz: the capital of {country} is which city?",
    "Could you please look into your memory and give me {country}'s capital city?",
    "My homework asks for the capital of {country}. What should I write?",
    "For {country}, what would the capital be?",
    "Help me out, what's the capital city of the country {country}?",
    "Suppose I travel to {country}. What is the name of the capital there?",
    "Do you happen to know the capital of {country}?",
    "I always forget the capital of {country}, which one was it again?",
    "I'm filling in a crossword: capital of {country}?",
    "My friend asked me about the capital of {country}, can you help?",
    "What city serves as the capital for {country}?",
)
SUM_PHRASINGS = (
    "Could you work out {a} plus {b} for me?",
    "I need the total when {a} and {b} are put together.",
    "If you add {b} to {a}, what do you get?",
    "Quick quiz: {a} + {b} is what number?",
    "My homework says {a} + {b}. What should I write?",
    "Let me test you: how much are {a} and {b} in sum?",
)
NAME_STATEMENTS = (
    "By the way, people call me {name}.",
    "Before we start, you should know that my name is {name}.",
    "Good day, {name} speaking here.",
    "Nice to meet you, the name's {name}.",
)
NAME_QUESTIONS = (
    "Can you still tell me what I am called?",
    "So, which name did I give you at the start?",
    "Let me test your memory: my name is?",
    "Quick quiz: what's my name again?",
)
CALCULATOR_PHRASINGS = (
    "I need the exact value of {expression}, can you get it for me?",
    "My homework says {expression}. What should I write?",
    "Could you find out how much {expression} makes?",
    "Quick quiz for your calculator: {expression}",
)
CLOCK_PHRASINGS = (
    "My friend lives in {city}. What does her clock show at this moment?",
    "I want to phone someone in {city}, could you look up the local time there?",
    "Would you find out how late it is in {city} at the moment?",
    "Quick quiz: what's the time over in {city}?",
)
CLOCK_PHRASINGS_HERE = (
    "Could you look at the clock and tell me how late it is?",
    "I forgot my watch. What's the time at the moment?",
)


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """(longest literal part in lower case, the whole phrasing with anything in its slots)."""
    rows = []
    for phrasing in (
        *CAPITAL_PHRASINGS,
        *SUM_PHRASINGS,
        *NAME_STATEMENTS,
        *NAME_QUESTIONS,
        *CALCULATOR_PHRASINGS,
        *CLOCK_PHRASINGS,
        *CLOCK_PHRASINGS_HERE,
    ):
        pieces = re.split(r"\{\w+\}", phrasing)
        pattern = re.compile(".+".join(map(re.escape, pieces)), re.IGNORECASE)
        rows.append((max(pieces, key=len).lower().strip(" .?!,"), pattern))
    return tuple(rows)


def is_held_phrasing(text: str) -> bool:
    """Whether the text is one of the phrasings above, whatever fills its slots."""
    lowered = text.lower()
    return any(part in lowered and pattern.fullmatch(text) is not None for part, pattern in _patterns())


def normal_form(text: str) -> str:
    """Lower case, letters only: two phrasings are the same when their normal forms are."""
    return " ".join(re.findall(r"[a-z']+", text.lower()))
