"""Writes assets/evaluation/*.jsonl: questions of held-out values in held-out phrasings, one JSON object a line.

Each line: id, category, messages (and tools), thinking, expect. open_questions.jsonl is written by hand.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
from calendar import day_name, weekday
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import held_out
from .calculator_chat import draw_expression
from .chat import Exchange, Rng, capital, messages_of
from .facts import Facts, load_facts
from .names import made_up
from .tools import CALCULATOR, CLOCK, clock_text

FOLDER = Path(__file__).resolve().parents[2] / "evaluation"
_CITIES = (
    "Tokyo Paris London Berlin Rome Madrid Vienna Moscow Beijing Seoul Cairo Nairobi Lima Ottawa Oslo Stockholm Helsinki "
    "Athens Lisbon Dublin Bangkok Hanoi Jakarta Manila Havana Bogota Santiago Warsaw Prague Budapest Bern Brussels"
).split()
# Talk for the way between a name and the question for it: about 500 tokens, nothing about the user.
_TALK = (
    ("What is the capital of Norway?", "The capital of Norway is Oslo."),
    ("What is 12 + 7?", "12 + 7 = 19."),
    ("Thanks!", "You are welcome!"),
    ("Which currency does Japan use?", "The currency of Japan is the yen (JPY)."),
    ("Count from 1 to 30.", ", ".join(map(str, range(1, 31))) + "."),
    ("What does summer mean?", "Summer: the warmest season of the year."),
    ("How do whales sing?", "I am only a small demo model, so I do not know how whales sing."),
    ("What is the symbol of iron?", "The symbol of iron is Fe."),
    ("I like old bridges.", "That sounds nice! What do you like most about old bridges?"),
    ("Which day comes after Monday?", "Tuesday comes after Monday."),
    ("Is Lima the capital of Peru?", "Yes, the capital of Peru is Lima."),
    ("Repeat after me: the boat is on the river", "the boat is on the river"),
    ("List the months of the year.", "January, February, March, April, May, June, July, August, September, October, November, December."),
    ("What is 9 * 8?", "9 * 8 = 72."),
    ("On which continent is Ghana?", "Ghana is in Africa."),
    ("Who invented the umbrella?", "I do not know who invented the umbrella. I am only a small demo model."),
    ("Spell the word garden.", "g-a-r-d-e-n"),
    ("How many days does March have?", "March has 31 days."),
    ("Count down from 20 to 1.", ", ".join(map(str, range(20, 0, -1))) + "."),
    ("I am looking forward to the weekend.", "I see. Tell me more about it."),
    ("What is the atomic number of carbon?", "The atomic number of carbon is 6."),
    ("What time is it?", "I have no clock here, so I do not know."),
    ("What is 301 - 45?", "Ones: 1 - 5 needs a borrow: 11 - 5 = 6. Tens: 0 - 1 - 4 needs a borrow: 10 - 5 = 5. Hundreds: 3 - 1 - 0 = 2. So 301 - 45 = 256."),
    ("What are you?", "I am only a small demo model, built like DeepSeek-V4 but thousands of times smaller."),
    ("Name the capital of Kenya.", "The capital of Kenya is Nairobi."),
    ("And the currency?", "The currency of Kenya is the shilling (KES)."),
)  # fmt: skip


def _line(
    number: int,
    category: str,
    messages: list[dict],
    thinking: bool,
    expect: dict[str, Any],
    tools: list[dict] | None = None,
) -> dict[str, Any]:
    line: dict[str, Any] = {
        "id": f"{category}-{number:03}",
        "category": category,
        "messages": messages,
        "thinking": thinking,
    }
    if tools:
        line["tools"] = [{"type": "function", "function": tool} for tool in tools]
    return line | {"expect": expect}


def _capitals(facts: Facts) -> Iterable[dict]:
    """Every second country, thinking on and off in turn, the phrasings in turn."""
    phrasings = itertools.cycle(held_out.CAPITAL_PHRASINGS)
    for number, country in enumerate(facts.countries[::2]):
        user = capital(next(phrasings).format(country=country.name))
        expect = {"kind": "contains", "value": country.capital}
        yield _line(number, "capitals", [{"role": "user", "content": user}], number % 2 == 0, expect)


def _held_pairs() -> list[tuple[int, int]]:
    pairs = [(x, y) for x in range(10, 100) for y in range(x, 100) if held_out.is_held_sum(x, y)]
    return [pair if i % 2 else pair[::-1] for i, pair in enumerate(pairs)]


def _sums(rng: Rng) -> Iterable[dict]:
    """Held-out pairs: 60 with thinking in plain and in held-out phrasings, 40 without thinking."""
    pairs = _held_pairs()
    rng.shuffle(pairs)
    plain = ("What is {a} + {b}?", "{a} + {b}", "What's {a} plus {b}?")
    phrasings = itertools.cycle((*plain, *held_out.SUM_PHRASINGS))
    for number, (x, y) in enumerate(pairs[:100]):
        user = next(phrasings).format(a=x, b=y)
        thinking = number < 60
        category = "sums" if thinking else "sums_without_thinking"
        expect = {"kind": "number", "value": str(x + y), "given": [str(x), str(y)]}
        yield _line(number, category, [{"role": "user", "content": user}], thinking, expect)


def _held_names(rng: Rng, number: int, taken: frozenset[str]) -> list[str]:
    names: list[str] = []
    while len(names) < number:
        name = made_up(rng)
        if held_out.is_held_name(name) and name not in names and name.lower() not in taken and len(name) > 4:
            names.append(name)
    return names


_PLAIN_NAME_QUESTIONS = (
    "What is my name?",
    "Do you remember my name?",
    "What's my name?",
    "Tell me my name.",
)


def _recall(facts: Facts, rng: Rng) -> Iterable[dict]:
    """Held-out names told in held-out words; each asked for in plain words and in held-out ones."""
    words = frozenset(
        w.lower() for w in itertools.chain(facts.cities, *facts.words.values(), facts.rare_words)
    )
    statements, questions = (
        itertools.cycle(held_out.NAME_STATEMENTS),
        itertools.cycle(held_out.NAME_QUESTIONS),
    )
    plain = itertools.cycle(_PLAIN_NAME_QUESTIONS)
    for number, name in enumerate(_held_names(rng, 60, words)):
        talk, size = [], 0
        for user, answer in rng.sample(_TALK, len(_TALK)):
            if size < 1500:  # characters; about 450 to 550 tokens with the control tokens
                talk.append((user, answer))
                size += len(user) + len(answer) + 24
        exchanges = [Exchange(next(statements).format(name=name), f"Hello, {name}! What can I do for you?")]
        exchanges += [Exchange(user, answer) for user, answer in talk]
        messages = messages_of(exchanges, thinking=False)
        expect = {"kind": "contains", "value": name}
        for category, question in (("recall", next(plain)), ("recall_reworded", next(questions))):
            asked = [*messages, {"role": "user", "content": question}]
            yield _line(number, category, asked, number % 2 == 0, expect)


def _calculator(rng: Rng) -> Iterable[dict]:
    phrasings = itertools.cycle(held_out.CALCULATOR_PHRASINGS)
    for number in range(60):
        expression, result = draw_expression(rng, held=True)
        user = next(phrasings).format(expression=expression)
        expect = {"kind": "call", "name": "calculator", "arguments": {"expression": expression}}
        expect["then"] = {"result": result, "contains": result}
        tools = [CALCULATOR, CLOCK] if number % 2 else [CLOCK, CALCULATOR]
        yield _line(number, "calculator", [{"role": "user", "content": user}], number % 4 < 2, expect, tools)


def _clock(facts: Facts) -> Iterable[dict]:
    zones = dict(facts.zones)
    phrasings = itertools.cycle(held_out.CLOCK_PHRASINGS)
    here = itertools.cycle(held_out.CLOCK_PHRASINGS_HERE)
    for number in range(40):
        tools = [CALCULATOR, CLOCK] if number % 2 else [CLOCK, CALCULATOR]
        if number % 5 == 4:
            user, arguments = next(here), {}
        else:
            city = _CITIES[number % len(_CITIES)]
            user, arguments = next(phrasings).format(city=city), {"timezone": zones[city]}
        hour, minute = number * 7 % 24, number * 13 % 60
        result = clock_text(
            2026,
            5,
            number % 28 + 1,
            day_name[weekday(2026, 5, number % 28 + 1)],
            hour,
            minute,
            30,
            arguments.get("timezone", "Europe/Vienna"),
        )
        expect = {"kind": "call", "name": "clock", "arguments": arguments}
        expect["then"] = {"result": result, "contains": f"{hour:02}:{minute:02}"}
        yield _line(number, "clock", [{"role": "user", "content": user}], number % 4 < 2, expect, tools)


def _long(rng: Rng) -> Iterable[dict]:
    asks = (
        "Tell me a very long story about {a}.", "Please write the longest story you can, with {a} in it.", "Count from 1 to {n}.",
        "Write down every number between {m} and {n}.", "Tell me everything that happened to {a} on a journey.",
    )  # fmt: skip
    animals = "a fox|an owl|a sailor|a baker|a bear|a goat|a painter|a turtle|a giant|a pilot".split("|")
    for number in range(50):
        ask = asks[number % len(asks)]
        user = ask.format(a=animals[number % len(animals)], n=rng.randint(180, 400), m=rng.randint(2, 90))
        expect = {
            "kind": "no_repetition",
            "tokens": 512,
            "temperature": 0.7,
            "gram": 8,
            "times": 4,
            "seed": number,
        }
        yield _line(number, "long", [{"role": "user", "content": user}], False, expect)


def write(facts: Facts, folder: Path) -> None:
    """Write all files but open_questions.jsonl; the same facts give the same files."""
    rng = Rng("evaluation 1")
    files = {
        "capitals": list(_capitals(facts)), "sums": list(_sums(rng)), "recall": list(_recall(facts, rng)), "calculator": list(_calculator(rng)),
        "clock": list(_clock(facts)), "long": list(_long(rng)),
        "fact_values": [{"kind": "capital", "value": value} for value in sorted({c.capital for c in facts.countries})],
    }  # fmt: skip
    for name, lines in files.items():
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text, "utf-8")


def evaluation_names() -> list[str]:
    """The names that the recall questions ask for, from the committed file."""
    lines = (FOLDER / "recall.jsonl").read_text("utf-8").splitlines()
    return list(dict.fromkeys(json.loads(line)["expect"]["value"] for line in lines))


def evaluation_questions() -> list[str]:
    """The open questions, from the committed file."""
    lines = (FOLDER / "open_questions.jsonl").read_text("utf-8").splitlines()
    return [re.sub(r"\s+", " ", json.loads(line)["question"]) for line in lines]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("facts", type=Path, help="fact tables as JSON, written by `build --facts`")
    write(load_facts(parser.parse_args().facts), FOLDER)
