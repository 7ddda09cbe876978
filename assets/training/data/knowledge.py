"""Definitions, chemical elements, the calendar, spelling and copying."""

from __future__ import annotations

import calendar

from .chat import Exchange, Rng, a, capital, casual
from .facts import Facts
from .phrasing import asking

_DEFINE = (
    "What does {w} mean?", "Define {w}.", "What is the meaning of {w}?", 'What does the word "{w}" mean?',
    "Explain the word {w}.", "definition of {w}", "Can you define {w}?", "Give me a definition of {w}.",
    "What is {aw}?", "What do you mean by {w}?", "I don't know the word {w}. What does it mean?",
    "Tell me what {w} means.", "meaning of {w}", "How would you define {w}?",
)  # fmt: skip


def define(facts: Facts, rng: Rng) -> Exchange:
    word, gloss = rng.choice(facts.definitions)
    user = rng.choice(_DEFINE).format(w=word, aw=a(word))
    if rng.random() < 0.25:
        user = asking(
            rng.choice(
                (
                    "the meaning of {w}",
                    "the meaning of the word {w}",
                    "the definition of {w}",
                    "what {w} means",
                )
            ).format(w=word),
            rng,
        )
    answer = rng.choice(
        (
            f"{capital(word)}: {gloss}.",
            f"{capital(word)} means: {gloss}.",
            f'The word "{word}" means: {gloss}.',
            f"{capital(gloss)}.",
        )
    )
    thought = rng.choice(
        (
            f"The user wants to know the word {word}. I know it: {gloss}.",
            f"{word} = {gloss}.",
            f"A definition. I recall {word}: {gloss}.",
            f"Do I know {word}? Yes: {gloss}.",
        )
    )
    return Exchange(casual(user, rng), answer, thought, f"{capital(gloss)}.", f"Meaning of {word}")


def element(facts: Facts, rng: Rng) -> Exchange:
    name, symbol, number = rng.choice(facts.elements)
    kind = rng.randrange(6)
    if kind == 0:
        user = rng.choice(
            (
                "What is the chemical symbol of {n}?",
                "What's the symbol for {n}?",
                "symbol of {n}",
                "Which symbol does {n} have?",
            )
        )
        answer, brief = f"The symbol of {name} is {symbol}.", symbol
    elif kind == 1:
        user = rng.choice(
            (
                "What is the atomic number of {n}?",
                "atomic number of {n}",
                "Which atomic number does {n} have?",
                "What number is {n} in the periodic table?",
            )
        )
        answer, brief = f"The atomic number of {name} is {number}.", f"{number}"
    elif kind == 2:
        user = rng.choice(
            (
                "Which element has the symbol {s}?",
                "What element is {s}?",
                "{s} is the symbol of which element?",
            )
        )
        answer, brief = f"{symbol} is the symbol of {name}.", name
    elif kind == 3:
        user = rng.choice(
            (
                "Which element has the atomic number {z}?",
                "What is element number {z}?",
                "Which element is number {z}?",
            )
        )
        answer, brief = f"Element number {number} is {name} ({symbol}).", name
    elif kind == 4:
        user = rng.choice(("Is {n} a chemical element?", "Is {n} an element?"))
        answer, brief = f"Yes, {name} is a chemical element with the symbol {symbol}.", "Yes."
    else:
        user = rng.choice(("Tell me about the element {n}.", "What do you know about {n}?", "What is {n}?"))
        answer, brief = (
            f"{capital(name)} is a chemical element with the symbol {symbol} and the atomic number {number}.",
            "",
        )
    user = user.format(n=name, s=symbol, z=number)
    if kind <= 1 and rng.random() < 0.3:
        user = asking(f"the {'chemical symbol' if kind == 0 else 'atomic number'} of {name}", rng)
    thought = (
        rng.choice(("An element: ", "I recall the periodic table. ", "Chemistry. ", "Let me recall. "))
        + f"{name}, {symbol}, number {number}."
    )
    return Exchange(casual(user, rng, keep=(symbol,)), answer, thought, brief, f"Element {name}")


_DAYS = list(calendar.day_name)
_MONTHS = list(calendar.month_name)[1:]
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()


def calendar_question(rng: Rng) -> Exchange:
    kind = rng.randrange(9)
    day, month = rng.randrange(7), rng.randrange(12)
    title = "Calendar question"
    if kind == 0:
        user = rng.choice(
            (
                "What day comes after {d}?",
                "Which day follows {d}?",
                "day after {d}",
                "Today is {d}. What day is tomorrow?",
            )
        ).format(d=_DAYS[day])
        answer = _DAYS[(day + 1) % 7]
        return Exchange(
            casual(user, rng),
            f"{answer} comes after {_DAYS[day]}.",
            f"{_DAYS[day]}, then {answer}.",
            answer,
            title,
        )
    if kind == 1:
        user = rng.choice(
            (
                "What day comes before {d}?",
                "Which day is before {d}?",
                "Today is {d}. What day was yesterday?",
            )
        ).format(d=_DAYS[day])
        answer = _DAYS[(day - 1) % 7]
        return Exchange(
            casual(user, rng),
            f"{answer} comes before {_DAYS[day]}.",
            f"{answer}, then {_DAYS[day]}.",
            answer,
            title,
        )
    if kind == 2:
        user = rng.choice(
            (
                "How many days does {m} have?",
                "How many days are there in {m}?",
                "days in {m}",
                "How long is {m}?",
            )
        ).format(m=_MONTHS[month])
        extra = " (29 in a leap year)" if month == 1 else ""
        return Exchange(
            casual(user, rng),
            f"{_MONTHS[month]} has {_LENGTHS[month]} days{extra}.",
            f"{_MONTHS[month]}: {_LENGTHS[month]}{extra}.",
            f"{_LENGTHS[month]}",
            f"Days in {_MONTHS[month]}",
        )
    if kind == 3:
        user = rng.choice(
            ("Which month comes after {m}?", "What month follows {m}?", "month after {m}")
        ).format(m=_MONTHS[month])
        answer = _MONTHS[(month + 1) % 12]
        return Exchange(
            casual(user, rng),
            f"{answer} comes after {_MONTHS[month]}.",
            f"{_MONTHS[month]}, then {answer}.",
            answer,
            title,
        )
    if kind == 4:
        user = rng.choice(
            (
                "Which month is the {o} of the year?",
                "What is the {o} month?",
                "Name the {o} month of the year.",
            )
        ).format(o=_ORDINALS[month])
        return Exchange(
            casual(user, rng),
            f"The {_ORDINALS[month]} month is {_MONTHS[month]}.",
            f"Month number {month + 1} is {_MONTHS[month]}.",
            _MONTHS[month],
            title,
        )
    if kind == 5:
        year = rng.randint(1800, 2100)
        leap = calendar.isleap(year)
        user = rng.choice(
            ("Is {y} a leap year?", "Was {y} a leap year?", "Does February {y} have 29 days?")
        ).format(y=year)
        why = (
            f"{year} can be divided by 4"
            + (
                " and is no full century"
                if year % 100
                else (" and by 400" if leap else " but it is a century that 400 does not divide")
            )
            if year % 4 == 0
            else f"{year} cannot be divided by 4"
        )
        answer = f"Yes, {year} is a leap year." if leap else f"No, {year} is not a leap year."
        return Exchange(
            casual(user, rng),
            answer,
            f"{why}. So it is {'' if leap else 'not '}a leap year.",
            answer[:3].rstrip(",") + ".",
            f"Leap year {year}",
        )
    if kind == 6:
        user, answer = rng.choice(
            (("How many days are there in a week?", "A week has 7 days."), ("How many months are in a year?", "A year has 12 months."),
             ("How many hours does a day have?", "A day has 24 hours."), ("How many minutes are in an hour?", "An hour has 60 minutes."),
             ("How many seconds are in a minute?", "A minute has 60 seconds."), ("How many days are in a year?", "A year has 365 days, a leap year 366."),
             ("How many weeks are there in a year?", "A year has 52 weeks and a day or two."))
        )  # fmt: skip
        return Exchange(casual(user, rng), answer, "I know this from the calendar. " + answer, "", title)
    if kind == 7:
        user, answer = rng.choice(
            (("Name the days of the week.", ", ".join(_DAYS) + "."), ("List the months of the year.", ", ".join(_MONTHS) + "."),
             ("What are the seven days of the week?", ", ".join(_DAYS) + "."), ("Can you list the twelve months?", ", ".join(_MONTHS) + "."))
        )  # fmt: skip
        return Exchange(casual(user, rng), answer, "I list them in order.", "", title)
    count = rng.randint(2, 6)
    user = rng.choice(
        ("Today is {d}. What day is it in {n} days?", "What day is {n} days after {d}?")
    ).format(d=_DAYS[day], n=count)
    walk = ", ".join(_DAYS[(day + i + 1) % 7] for i in range(count))
    answer = _DAYS[(day + count) % 7]
    return Exchange(
        casual(user, rng),
        f"{answer}.",
        f"{_DAYS[day]}, then {walk}. So {answer}.",
        answer,
        title,
        aloud=f"{walk}: it is {answer}.",
    )


def spelling(facts: Facts, rng: Rng) -> Exchange:
    word = rng.choice(facts.words["noun"][:1500])
    letters = "-".join(word)
    kind = rng.randrange(3)
    if kind == 0:
        user = rng.choice(
            ("Spell the word {w}.", "How do you spell {w}?", "Spell {w}", "Can you spell {w} for me?")
        ).format(w=word)
        return Exchange(
            casual(user, rng, keep=(word,)),
            letters,
            f"Letter by letter: {letters}.",
            letters,
            f"Spelling {word}",
        )
    if kind == 1:
        user = rng.choice(("What is the first letter of {w}?", "Which letter does {w} start with?")).format(
            w=word
        )
        return Exchange(
            casual(user, rng, keep=(word,)),
            f"The first letter of {word} is {word[0]}.",
            f"{letters}: the first is {word[0]}.",
            word[0],
            f"First letter of {word}",
        )
    user = rng.choice(
        ("How many letters does {w} have?", "How many letters are in {w}?", "Count the letters of {w}.")
    ).format(w=word)
    count = ", ".join(f"{letter} {i + 1}" for i, letter in enumerate(word))
    return Exchange(
        casual(user, rng, keep=(word,)),
        f"{capital(word)} has {len(word)} letters.",
        f"{count}. That is {len(word)}.",
        f"{len(word)}",
        f"Letters of {word}",
        aloud=f"{count}. So {word} has {len(word)} letters.",
    )


def copying(facts: Facts, rng: Rng, name: str) -> Exchange:
    """Repeat something exactly: a name never seen, a sentence, a list, a number, a line of marks."""
    kind = rng.choice((0, 0, 0, 1, 2, 3, 4, 5))
    if kind == 0:
        text = name
    elif kind == 1:
        text = rng.choice(facts.sentences)
    elif kind == 2:
        text = ", ".join(rng.choice(facts.words["noun"]) for _ in range(rng.randint(2, 8)))
    elif kind == 3:
        text = str(rng.randint(10, 10 ** rng.randint(2, 9)))
    elif kind == 4:
        text = " ".join(rng.choice(facts.cities) for _ in range(rng.randint(1, 5)))
    else:
        alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ0123456789"
        text = "".join(rng.choice(alphabet) for _ in range(rng.randint(4, 10)))
    quoted = rng.random() < 0.4
    frame = rng.choice(
        (
            "Repeat: {t}",
            "Say {t}",
            "Repeat after me: {t}",
            "Please repeat this: {t}",
            "Copy this: {t}",
            "Write {t}",
            "Echo: {t}",
            "Say the following: {t}",
            "Can you say {t}",
            "Type exactly this: {t}",
        )
    )
    user = frame.format(t=f'"{text}"' if quoted else text)
    thought = rng.choice(
        (
            "I only have to copy it.",
            f"The text to repeat is: {text}",
            "The user wants an exact copy.",
            "Copy, nothing else.",
        )
    )
    return Exchange(user, text, thought, text, "Repeating a text")
