"""Sums, differences, products and comparisons, worked digit by digit when thinking."""

from __future__ import annotations

from .chat import Exchange, Rng, capital, casual
from .held_out import is_held_sum

_PLACES = ("ones", "tens", "hundreds", "thousands", "ten thousands")
_ADD_FRAMES = (
    "What is {a} + {b}?",
    "{a} + {b}",
    "{a}+{b}=",
    "{a} + {b} = ?",
    "What's {a} plus {b}?",
    "How much is {a} and {b}?",
    "Add {a} and {b}.",
    "Add {a} to {b}",
    "Calculate {a} + {b}.",
    "Compute {a}+{b}",
    "What do you get when you add {a} and {b}?",
    "Can you add {a} and {b}?",
    "Please tell me what {a} + {b} is.",
    "The sum of {a} and {b}?",
    "What is the sum of {a} and {b}?",
    "How much is {a} plus {b}?",
    "{a} plus {b} equals?",
    "{a} plus {b}",
    "what does {a} + {b} equal",
    "Solve {a} + {b}.",
    "What is the total of {a} and {b}?",
    "Tell me {a} + {b}",
    "Hi! How much is {a} + {b}?",
    "Sum up {a} and {b} please",
    "Do you know what {a} + {b} is?",
    "I want to know {a} + {b}.",
    "Let's do some maths: {a} + {b}",
    "Give me the result of {a} + {b}.",
    "Work out {a} + {b}",
)
_ADD_STORIES = (
    "I have {a} {things} and buy {b} more. How many {things} do I have?",
    "There are {a} {things} in one box and {b} in another. How many are there together?",
    "{name} has {a} {things} and finds {b} more. How many {things} does {name} have now?",
    "A shop sold {a} {things} on Monday and {b} on Tuesday. How many did it sell in all?",
)
_SUBTRACT_FRAMES = (
    "What is {a} - {b}?",
    "{a} - {b}",
    "{a}-{b}=",
    "What's {a} minus {b}?",
    "Subtract {b} from {a}.",
    "Take {b} away from {a}",
    "How much is {a} minus {b}?",
    "Calculate {a} - {b}.",
    "What is the difference between {a} and {b}?",
    "Please tell me what {a} - {b} is.",
    "{a} minus {b} equals?",
    "Work out {a} - {b}",
    "Can you subtract {b} from {a}?",
)
_SUBTRACT_STORIES = (
    "I had {a} {things} and gave away {b}. How many {things} are left?",
    "There were {a} {things} in the basket and {b} were taken out. How many are left?",
    "{name} has {a} {things} and loses {b} of them. How many remain?",
)
_MULTIPLY_FRAMES = (
    "What is {a} * {b}?",
    "{a} x {b}",
    "{a}*{b}=",
    "What's {a} times {b}?",
    "Multiply {a} by {b}.",
    "How much is {a} times {b}?",
    "Calculate {a} × {b}.",
    "What is the product of {a} and {b}?",
    "{a} times {b}",
    "Work out {a} * {b}",
    "Can you multiply {a} and {b}?",
)
THINGS = (
    "apples books coins stamps eggs pens cards stones cups tickets marbles flowers shells buttons nuts oranges "
    "pencils balls plates keys"
).split()
_NAMES = "Ann Ben Clara Tom Mia Paul Nora Jack Lena Omar Ida Max".split()
_ANSWERS = (
    "{s} = {r}.",
    "{s} is {r}.",
    "The answer is {r}.",
    "{s} = {r}",
    "That makes {r}.",
    "It is {r}.",
    "{r}",
)


def _answer(rng: Rng, shown: str, result: int, weights: tuple[int, ...] = (9, 4, 3, 3, 1, 1, 2)) -> str:
    return rng.choices(_ANSWERS, weights)[0].format(s=shown, r=result)


def digits_of_sum(a: int, b: int, rng: Rng) -> str:
    """a + b worked from the right, one place at a time, with the carry; three ways to write it down."""
    style = rng.randrange(3)
    carry, place, lines = 0, 0, []
    x, y = a, b
    while x or y or place == 0:
        p, q = x % 10, y % 10
        total = p + q + carry
        terms = f"{p} + {q}" + (f" + {carry}" if carry else "")
        last = x < 10 and y < 10
        if style == 0:
            note = (
                ""
                if last and total < 10
                else f", write {total % 10}" + (f", carry {total // 10}" * (total > 9))
            )
            lines.append(f"{_PLACES[place].capitalize()}: {terms} = {total}{note}.")
        elif style == 1:
            lines.append(f"{terms} = {total}" + (f", carry {total // 10}" if total > 9 else "") + ".")
        else:
            lines.append(f"{_PLACES[place]} {terms} = {total}")
        carry, x, y, place = total // 10, x // 10, y // 10, place + 1
    body = "; ".join(lines) + "." if style == 2 else " ".join(lines)
    return f"{body} So {a} + {b} = {a + b}."


def digits_of_difference(a: int, b: int, rng: Rng) -> str:
    """a - b for a >= b, from the right, borrowing where needed."""
    lines, borrow, place = [], 0, 0
    x, y = a, b
    while x or y or place == 0:
        p, q = x % 10 - borrow, y % 10
        shown = f"{x % 10}" + (" - 1" if borrow else "")
        if p < q:
            lines.append(
                f"{_PLACES[place].capitalize()}: {shown} - {q} needs a borrow: {p + 10} - {q} = {p + 10 - q}."
            )
            borrow = 1
        else:
            lines.append(f"{_PLACES[place].capitalize()}: {shown} - {q} = {p - q}.")
            borrow = 0
        x, y, place = x // 10, y // 10, place + 1
    return f"{' '.join(lines)} So {a} - {b} = {a - b}."


def _opening(rng: Rng, what: str) -> str:
    return rng.choice(
        (
            "",
            "",
            f"I need to {what}. ",
            f"Let me {what}. ",
            "This is arithmetic, I work from the right. ",
            "The user wants a calculation. ",
            "Step by step. ",
        )
    )


def draw_number(rng: Rng, digits: int) -> int:
    low = 10 ** (digits - 1) if digits > 1 else 0
    return rng.randint(low, 10**digits - 1)


def draw_pair(rng: Rng, digits: int, other: int) -> tuple[int, int]:
    """Two numbers with that many digits whose sum is not held out."""
    while True:
        a, b = draw_number(rng, digits), draw_number(rng, other)
        if not is_held_sum(a, b):
            return a, b


def addition(rng: Rng, digits: int = 2, other: int = 2) -> Exchange:
    a, b = draw_pair(rng, digits, other)
    if rng.random() < 0.14:
        things, name = rng.choice(THINGS), rng.choice(_NAMES)
        user = rng.choice(_ADD_STORIES).format(a=a, b=b, things=things, name=name)
        answer = rng.choice((f"{a} + {b} = {a + b}, so {a + b} {things}.", f"{a + b} {things}.", f"{a + b}"))
    else:
        user = rng.choice(_ADD_FRAMES).format(a=a, b=b)
        answer = _answer(rng, f"{a} + {b}", a + b)
    work = digits_of_sum(a, b, rng)
    thought = _opening(rng, f"add {a} and {b}") + work
    aloud = capital(work) if max(digits, other) > 2 else ""
    return Exchange(casual(user, rng), answer, thought, f"{a + b}", f"Sum of {a} and {b}", aloud=aloud)


def subtraction(rng: Rng, digits: int = 2) -> Exchange:
    a, b = draw_number(rng, digits), draw_number(rng, rng.randint(1, digits))
    if a < b and rng.random() < 0.7:
        a, b = b, a
    if a >= b:
        thought = digits_of_difference(a, b, rng)
    else:
        turned = digits_of_difference(b, a, rng)
        thought = f"{b} is larger than {a}, so the result is negative. {turned} So {a} - {b} = {a - b}."
    if rng.random() < 0.14 and a > b:
        things, name = rng.choice(THINGS), rng.choice(_NAMES)
        user = rng.choice(_SUBTRACT_STORIES).format(a=a, b=b, things=things, name=name)
        answer = rng.choice((f"{a} - {b} = {a - b}, so {a - b} {things} are left.", f"{a - b} are left."))
    else:
        user = rng.choice(_SUBTRACT_FRAMES).format(a=a, b=b)
        answer = _answer(rng, f"{a} - {b}", a - b)
    aloud = capital(thought) if digits > 2 or a < b else ""
    thought = _opening(rng, f"subtract {b} from {a}") + thought
    return Exchange(casual(user, rng), answer, thought, f"{a - b}", f"{a} minus {b}", aloud=aloud)


def multiplication(rng: Rng) -> Exchange:
    """The tables up to 12, and two digits times one digit by splitting the tens."""
    while True:
        a, b = (
            (rng.randint(0, 12), rng.randint(0, 12))
            if rng.random() < 0.6
            else (rng.randint(13, 99), rng.randint(2, 9))
        )
        tens, ones = a // 10 * 10 * b, a % 10 * b
        if a <= 12 or not is_held_sum(tens, ones):
            break
    if a > 12 and a % 10:
        thought = f"{a} = {a // 10 * 10} + {a % 10}. {a // 10 * 10} * {b} = {tens}. {a % 10} * {b} = {ones}. {tens} + {ones} = {a * b}."
    else:
        thought = rng.choice(
            (
                f"From the table of {b}: {a} * {b} = {a * b}.",
                f"I know {a} times {b} by heart: {a * b}.",
                f"{a} * {b} = {a * b}.",
            )
        )
    user = rng.choice(_MULTIPLY_FRAMES).format(a=a, b=b)
    answer = _answer(rng, f"{a} * {b}", a * b)
    aloud = thought + f" So {a} * {b} = {a * b}." if a > 12 else ""
    return Exchange(casual(user, rng), answer, thought, f"{a * b}", f"{a} times {b}", aloud=aloud)


def division(rng: Rng) -> Exchange:
    b, result = rng.randint(2, 12), rng.randint(0, 12)
    a = b * result
    user = rng.choice(
        (
            "What is {a} / {b}?",
            "{a} / {b}",
            "What's {a} divided by {b}?",
            "Divide {a} by {b}.",
            "{a} divided by {b}",
        )
    ).format(a=a, b=b)
    thought = rng.choice(
        (
            f"{b} * {result} = {a}, so {a} / {b} = {result}.",
            f"How often does {b} go into {a}? {result} * {b} = {a}. So {result}.",
        )
    )
    return Exchange(
        casual(user, rng), _answer(rng, f"{a} / {b}", result), thought, f"{result}", f"{a} divided by {b}"
    )


def several(rng: Rng) -> Exchange:
    """Three to five numbers added up, with the running total."""
    while True:
        numbers = [rng.randint(1, rng.choice((9, 20, 50, 99))) for _ in range(rng.choice((3, 3, 3, 4, 5)))]
        totals = [sum(numbers[: i + 1]) for i in range(len(numbers))]
        if not any(is_held_sum(totals[i], numbers[i + 1]) for i in range(len(numbers) - 1)):
            break
    shown = " + ".join(map(str, numbers))
    listed = ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"
    user = rng.choice(
        (
            "What is {s}?",
            "{s}",
            "{s} = ?",
            "Add {l}.",
            "How much is {s}?",
            "Calculate {s}.",
            "What is the sum of {l}?",
            "Please add up {l}",
            "Work out {s}",
            "The total of {l}?",
        )
    ).format(s=shown, l=listed)
    steps = [f"{totals[i]} + {numbers[i + 1]} = {totals[i + 1]}" for i in range(len(numbers) - 1)]
    thought = (
        rng.choice(("", "I add one number after the other. ", "Several numbers. ", "Running total: "))
        + rng.choice((". ", ", ", "; ")).join(steps)
        + "."
    )
    answer = _answer(rng, shown, totals[-1])
    aloud = f"{', '.join(steps)}. So {shown} = {totals[-1]}."
    title = f"Sum of {len(numbers)} numbers"
    return Exchange(casual(user, rng), answer, thought, f"{totals[-1]}", title, aloud=aloud)


def mixed(rng: Rng) -> Exchange:
    """a + b - c and a - b + c."""
    while True:
        a, b, c = (rng.randint(2, 60) for _ in range(3))
        if rng.random() < 0.5:
            shown, middle, first = f"{a} + {b} - {c}", a + b, f"{a} + {b} = {a + b}"
            result, second = middle - c, f"{middle} - {c} = {middle - c}"
            held = is_held_sum(a, b)
        else:
            shown, middle, first = f"{a} - {b} + {c}", a - b, f"{a} - {b} = {a - b}"
            result, second = middle + c, f"{middle} + {c} = {middle + c}"
            held = is_held_sum(middle, c)
        if not held and middle >= 0 and result >= 0:
            break
    user = rng.choice(("What is {s}?", "{s}", "{s} =", "Calculate {s}.", "How much is {s}?")).format(s=shown)
    work = f"{first}. {second}."
    answer = _answer(rng, shown, result)
    return Exchange(casual(user, rng), answer, work, f"{result}", f"Calculating {shown}", aloud=work)


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
        casual(user, rng), _answer(rng, shown, result), thought, f"{result}", f"{_WORDS[a]} and {_WORDS[b]}"
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
        user = rng.choice(_MULTIPLY_FRAMES).format(a=a, b=b)
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


def arithmetic(rng: Rng) -> Exchange:
    """Any of the above, two-digit sums most often."""
    draw = rng.random()
    if draw < 0.30:
        return addition(rng, 2, 2)
    if draw < 0.36:
        return addition(rng, rng.choice((1, 2)), 1)
    if draw < 0.38:
        return in_words(rng)
    if draw < 0.42:
        return too_hard(rng) if rng.random() < 0.7 else remainder(rng)
    if draw < 0.54:
        return addition(rng, rng.choice((3, 3, 3, 4, 4, 5)), rng.choice((2, 3, 3, 4, 4)))
    if draw < 0.66:
        return subtraction(rng, rng.choice((2, 2, 2, 3)))
    if draw < 0.76:
        return several(rng)
    if draw < 0.84:
        return multiplication(rng)
    if draw < 0.88:
        return division(rng)
    if draw < 0.92:
        return mixed(rng)
    if draw < 0.96:
        return comparison(rng)
    return check(rng)
