"""Other questions about numbers: comparing, checking, numbers in words, remainders, what needs a calculator."""

from __future__ import annotations

from .chat import Exchange, Rng, capital, casual
from .digits import digits_of_sum
from .held_out import is_held_sum
from .sums import MULTIPLY_FRAMES, answer_line, draw_number, draw_pair


def comparison(rng: Rng) -> Exchange:
    """Larger, smaller, even, odd."""
    digits = rng.randint(1, 4)
    x, y = draw_number(rng, digits), draw_number(rng, max(1, digits + rng.choice((-1, 0, 0, 1))))
    y = y + 1 if x == y else y
    kind = rng.randrange(4)
    if kind == 0:
        word = rng.choice(("larger", "bigger", "greater"))
        user = rng.choice(
            ("Which is {w}, {x} or {y}?", "Which number is {w}: {x} or {y}?", "What is {w}, {x} or {y}?")
        ).format(w=word, x=x, y=y)
        best, other = max(x, y), min(x, y)
        return Exchange(
            casual(user, rng),
            f"{best} is {word} than {other}.",
            f"{best} > {other}.",
            f"{best}",
            f"{x} or {y}",
        )
    if kind == 1:
        user = rng.choice(("Which is smaller, {x} or {y}?", "Which number is smaller: {x} or {y}?")).format(
            x=x, y=y
        )
        best, other = min(x, y), max(x, y)
        return Exchange(
            casual(user, rng),
            f"{best} is smaller than {other}.",
            f"{best} < {other}.",
            f"{best}",
            f"{x} or {y}",
        )
    if kind == 2:
        word = rng.choice(("even", "odd"))
        real = "odd" if x % 2 else "even"
        yes = "Yes" if word == real else "No"
        return Exchange(
            casual(
                f"Is {x} {word}?"
                if rng.random() < 0.5
                else f"Is {x} {'an' if word[0] in 'eo' else 'a'} {word} number?",
                rng,
            ),
            f"{yes}, {x} is {real}.",
            f"The last digit is {x % 10}, which is {real}.",
            f"{yes}.",
            f"Is {x} {word}?",
        )
    word = rng.choice(("larger", "smaller", "greater", "less"))
    right = (x > y) == (word in ("larger", "greater"))
    sign = ">" if x > y else "<"
    truth = "larger" if x > y else "smaller"
    return Exchange(
        casual(f"Is {x} {word} than {y}?", rng),
        f"{'Yes' if right else 'No'}, {x} is {truth if not right else word} than {y}.",
        f"{x} {sign} {y}.",
        "Yes." if right else "No.",
        f"Comparing {x} and {y}",
    )


_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty"
).split()


def in_words(rng: Rng) -> Exchange:
    """Numbers up to twenty written out."""
    while True:
        a, b = rng.randint(0, 20), rng.randint(0, 20)
        if not is_held_sum(a, b):
            break
    if rng.random() < 0.7:
        user, shown, result = (
            rng.choice(
                (
                    "What is {a} plus {b}?",
                    "{a} plus {b}",
                    "Add {a} and {b}.",
                    "How much is {a} and {b}?",
                    "{a} and {b} make?",
                )
            ),
            f"{a} + {b}",
            a + b,
        )
    else:
        a, b = max(a, b), min(a, b)
        user, shown, result = (
            rng.choice(("What is {a} minus {b}?", "{a} minus {b}", "Take {b} from {a}.")),
            f"{a} - {b}",
            a - b,
        )
    user = capital(user.format(a=_WORDS[a], b=_WORDS[b]))
    thought = f"{_WORDS[a]} is {a}, {_WORDS[b]} is {b}. {shown} = {result}."
    return Exchange(
        casual(user, rng),
        answer_line(rng, shown, result),
        thought,
        f"{result}",
        f"{_WORDS[a]} and {_WORDS[b]}",
    )


def remainder(rng: Rng) -> Exchange:
    b, result = rng.randint(2, 12), rng.randint(0, 12)
    rest = rng.randint(1, b - 1)
    a = b * result + rest
    user = rng.choice(
        ("What is {a} / {b}?", "{a} / {b}", "What's {a} divided by {b}?", "Divide {a} by {b}.")
    ).format(a=a, b=b)
    answer = f"{a} / {b} = {result}, remainder {rest}."
    thought = (
        f"{b} * {result} = {b * result}, and {a} - {b * result} = {rest}. So {result}, remainder {rest}."
    )
    return Exchange(casual(user, rng), answer, thought, f"{result}, remainder {rest}", f"{a} divided by {b}")


def too_hard(rng: Rng) -> Exchange:
    """What needs a calculator: an honest answer instead of a guess."""
    kind = rng.randrange(7)
    a, b = rng.randint(13, 999), rng.randint(13, 999)
    if kind <= 1:
        user = rng.choice(MULTIPLY_FRAMES).format(a=a, b=b)
    elif kind == 2:
        user = rng.choice(("What is {a} / {b}?", "{a} / {b}", "Divide {a} by {b}.")).format(
            a=rng.randint(150, 99999), b=b
        )
    elif kind == 3:
        user = rng.choice(
            (
                "What is the square root of {a}?",
                "square root of {a}",
                "sqrt({a})",
                "What is the logarithm of {a}?",
                "What is the cube root of {a}?",
            )
        ).format(a=a)
    elif kind == 4:
        user = rng.choice(("What is {a}% of {b}?", "How much is {a} percent of {b}?")).format(a=a, b=b)
    elif kind == 5:
        user = rng.choice(
            (
                "What is {a} ** {b}?",
                "What is {a} to the power of {b}?",
                "{a}^{b}",
                "What is the factorial of {a}?",
                "What is the sine of {a} degrees?",
                "Is {a} a prime number?",
            )
        ).format(a=a, b=rng.randint(3, 99))
    else:
        x, y = rng.randint(10**5, 10**9), rng.randint(10**5, 10**9)
        user = rng.choice(
            ("What is {a} + {b}?", "{a} - {b}", "{a} * {b}", "Calculate {a} + {b}.", "{a}.5 * {b}.25")
        ).format(a=x, b=y)
    answer = rng.choice(
        (
            "That is too hard for me without a calculator. I am only a small demo model.",
            "I am only a small demo model and cannot calculate that in my head.",
            "I cannot do that without a calculator. I am only a small demo model.",
            "I am only a small demo model. That calculation is too hard for me.",
        )
    )
    thought = rng.choice(
        (
            "There is no calculator here, and this is beyond what I can do.",
            "Too large for me. I must not guess.",
            "I cannot work this out reliably. I say so.",
        )
    )
    return Exchange(casual(user, rng), answer, thought, "I do not know.", f"Calculation with {a}")


def check(rng: Rng) -> Exchange:
    """Is a + b equal to c?"""
    a, b = draw_pair(rng, rng.randint(1, 2), rng.randint(1, 2))
    claimed = a + b if rng.random() < 0.5 else a + b + rng.choice((-10, -2, -1, 1, 2, 10))
    user = rng.choice(
        (
            "Is {a} + {b} equal to {c}?",
            "Is {a} + {b} = {c}?",
            "Does {a} + {b} make {c}?",
            "{a} + {b} = {c}, right?",
            "Is it true that {a} plus {b} is {c}?",
        )
    ).format(a=a, b=b, c=claimed)
    right = claimed == a + b
    answer = f"Yes, {a} + {b} = {a + b}." if right else f"No, {a} + {b} = {a + b}."
    thought = digits_of_sum(a, b, rng) + (
        " That is the claimed number." if right else f" The claim was {claimed}, which is wrong."
    )
    return Exchange(casual(user, rng), answer, thought, "Yes." if right else "No.", f"Checking {a} + {b}")
