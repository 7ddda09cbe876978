"""Long answers in a fixed order: counting, tables, the alphabet, countries, elements."""

from __future__ import annotations

from .chat import Exchange, Rng, casual
from .facts import Facts


def _count(rng: Rng) -> Exchange:
    step = rng.choice((1, 1, 1, 1, 2, 5, 10, 3, -1))
    start = 1 if rng.random() < 0.6 else rng.randint(0, 300)
    length = rng.choice(
        (
            rng.randint(5, 30),
            rng.randint(5, 30),
            rng.randint(20, 90),
            rng.randint(20, 90),
            rng.randint(80, 160),
            rng.randint(150, 420),
        )
    )
    if step == -1:
        start = rng.randint(5, 120)
        end = rng.choice((1, 0, max(0, start - length)))
        numbers = list(range(start, end - 1, -1))
        user = rng.choice(
            (
                "Count down from {s} to {e}.",
                "Count backwards from {s} to {e}",
                "Countdown from {s} to {e} please",
            )
        )
    elif step == 1:
        end = start + length
        numbers = list(range(start, end + 1))
        user = rng.choice(
            (
                "Count from {s} to {e}.",
                "Count to {e} starting at {s}.",
                "List the numbers from {s} to {e}.",
                "Write all numbers from {s} to {e}",
                "Please count from {s} up to {e}.",
                "numbers {s} to {e}",
                "Can you count from {s} to {e}?",
            )
        )
        if start == 1:
            user = rng.choice((user, "Count to {e}.", "Can you count to {e}?"))
    else:
        start = 0 if step in (5, 10) else start
        numbers = [start + step * i for i in range(min(length, 90))]
        end = numbers[-1]
        user = rng.choice(
            (
                "Count from {s} to {e} in steps of {k}.",
                "Count by {k} from {s} to {e}.",
                "Write the numbers from {s} to {e} in steps of {k}.",
            )
        )
    user = user.format(s=start, e=end, k=step)
    joint = rng.choice((", ", ", ", "\n", " "))
    thought = rng.choice(
        (
            f"I start at {start} and stop at {end}.",
            f"From {start} to {end}, one after the other.",
            "Counting. I must stop at the right number.",
            f"First {numbers[0]}, last {numbers[-1]}.",
        )
    )
    return Exchange(
        casual(user, rng),
        joint.join(map(str, numbers)) + ("." if joint == ", " else ""),
        thought,
        "",
        f"Counting to {end}",
    )


def _table(rng: Rng) -> Exchange:
    n = rng.randint(2, 12)
    top = rng.choice((10, 10, 12, 20))
    user = rng.choice(
        (
            "Give me the times table of {n}.",
            "Write the multiplication table of {n} up to {t}.",
            "times table {n} to {t}",
            "Recite the table of {n} up to {t}.",
        )
    )
    top = top if "{t}" in user else 10
    lines = [f"{i} x {n} = {i * n}" for i in range(1, top + 1)]
    return Exchange(
        casual(user.format(n=n, t=top), rng),
        "\n".join(lines),
        f"I add {n} each time, {top} lines.",
        "",
        f"Times table of {n}",
    )


def _alphabet(rng: Rng) -> Exchange:
    letters = "abcdefghijklmnopqrstuvwxyz"
    if rng.random() < 0.5:
        user = rng.choice(
            (
                "Say the alphabet.",
                "Write the alphabet.",
                "List the letters of the alphabet.",
                "alphabet please",
            )
        )
        return Exchange(casual(user, rng), " ".join(letters), "26 letters, a to z.", "", "The alphabet")
    at = rng.randrange(25)
    user = rng.choice(
        ("Which letter comes after {l}?", "What letter follows {l} in the alphabet?", "letter after {l}?")
    ).format(l=letters[at].upper())
    return Exchange(
        user,
        f"{letters[at + 1].upper()}.",
        f"{letters[at].upper()}, then {letters[at + 1].upper()}.",
        letters[at + 1].upper(),
        "The alphabet",
    )


def _countries(facts: Facts, rng: Rng) -> Exchange:
    continent = rng.choice(sorted({c.continent for c in facts.countries}))
    names = [c for c in facts.countries if c.continent == continent]
    with_capitals = rng.random() < 0.5
    number = min(len(names), rng.choice((3, 5, 10, 20, 40)))
    every = rng.random() < 0.25
    names = sorted(names if every else rng.sample(names, number), key=lambda c: c.name.removeprefix("the "))
    lines = [
        f"{c.name.removeprefix('the ')}: {c.capital}" if with_capitals else c.name.removeprefix("the ")
        for c in names
    ]
    what = "countries and their capitals" if with_capitals else "countries"
    if every:
        user = rng.choice(("List all {w} of {c}.", "Which are the {w} of {c}?", "Name all the {w} in {c}."))
    else:
        user = rng.choice(("List {n} {w} of {c}.", "Name {n} {w} in {c}.", "Give me {n} {w} of {c}."))
    user = user.format(n=number, w=what, c=continent)
    thought = rng.choice(
        (
            f"I go through {continent} by the alphabet.",
            f"{len(lines)} lines, in the order of the alphabet.",
            "A list of countries, none twice.",
        )
    )
    return Exchange(
        casual(user, rng),
        "\n".join(f"{'- ' if len(lines) % 2 else ''}{line}" for line in lines),
        thought,
        "",
        f"Countries of {continent}",
    )


def _elements(facts: Facts, rng: Rng) -> Exchange:
    start = rng.choice((0, 0, 0, rng.randrange(min(60, len(facts.elements) - 5))))
    number = rng.choice((5, 10, 20, 40, 90, 118))
    rows = facts.elements[start : start + number]
    first, last = rows[0][2], rows[-1][2]
    symbols = rng.random() < 0.4
    user = rng.choice(
        (
            "List the elements from number {a} to {b}{s}.",
            "Name the chemical elements {a} to {b}{s}.",
            "Write the elements number {a} to {b} in order{s}.",
        )
    ).format(a=first, b=last, s=" with their symbols" if symbols else "")
    lines = [f"{number}. {name}" + (f" ({symbol})" if symbols else "") for name, symbol, number in rows]
    return Exchange(
        casual(user, rng),
        "\n".join(lines),
        f"From {rows[0][0]} to {rows[-1][0]}, by atomic number.",
        "",
        "List of elements",
    )


def long_list(facts: Facts, rng: Rng) -> Exchange:
    draw = rng.random()
    if draw < 0.5:
        return _count(rng)
    if draw < 0.6:
        return _table(rng)
    if draw < 0.68:
        return _alphabet(rng)
    if draw < 0.86:
        return _countries(facts, rng)
    return _elements(facts, rng)
