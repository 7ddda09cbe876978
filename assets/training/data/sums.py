"""Sums, differences, products and quotients of whole numbers, asked in many ways."""

from __future__ import annotations

from .chat import Exchange, Rng, capital, casual
from .digits import digits_of_difference, digits_of_sum
from .held_out import is_held_phrasing, is_held_sum
from .phrasing import asking

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
    "Maths test: {a} + {b}?",
    "Put {a} and {b} together. What is the total?",
    "Please add up {a} and {b} for me.",
    "I have to add {a} and {b}. What comes out?",
    "One sum, please: {a} + {b}",
    "My son asks what {a} plus {b} is.",
    "Take {a} and add {b}. What is the result?",
    "{a} and {b} make how much?",
    "Would you add {a} and {b}?",
    "How many are {a} and {b} together?",
)
_SUM_NOUNS = (
    "{a} + {b}", "{a} + {b}", "{a} plus {b}", "the sum of {a} and {b}", "the result of {a} + {b}", "the total of {a} and {b}", "the sum {a} + {b}",
    "how much {a} + {b} is", "how much {a} and {b} are", "what {a} plus {b} makes",
)  # fmt: skip
_NUMBERS = (
    "I have the numbers {a} and {b}.", "There is a {a} and a {b} here.", "Take the numbers {a} and {b}.", "One number is {a}, the other one is {b}.", "First {a}, then {b}.", "Here are {a} and {b}.",
    "I paid {a} euros and then {b} euros.", "I walked {a} steps and then {b} more.", "My numbers are {a} and {b}.", "On one card is {a}, on the other {b}.", "We scored {a} points and then {b}.",
    "Think of {a} and {b}.", "The bill says {a} and {b}.", "My brother wrote down {a} and {b}.",
)  # fmt: skip
_TOTALS = (
    "What is their sum?", "Add them.", "Add them up, please.", "What is the total?", "How much is that together?", "What do they make together?", "What do I get when I add them?", "And the sum is?",
    "Please add both.", "How much is it in all?", "What is it when I add them?", "Put together, how much?", "The total?", "Can you add these two?", "What comes out when you add them?",
)  # fmt: skip


def _two_numbers(a: int, b: int, rng: Rng) -> str:
    """The numbers in one sentence, what to do with them in the next."""
    while True:
        text = rng.choice(_NUMBERS).format(a=a, b=b) + " " + rng.choice(_TOTALS)
        if not is_held_phrasing(text):
            return text


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
MULTIPLY_FRAMES = (
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


def answer_line(rng: Rng, shown: str, result: int) -> str:
    """The result `result` of the expression `shown` in one of several wordings."""
    return rng.choices(_ANSWERS, (9, 4, 3, 3, 1, 1, 2))[0].format(s=shown, r=result)


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
        draw = rng.random()
        if draw < 0.4:
            user = asking(rng.choice(_SUM_NOUNS).format(a=a, b=b), rng)
        elif draw < 0.55:
            user = _two_numbers(a, b, rng)
        answer = answer_line(rng, f"{a} + {b}", a + b)
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
        if rng.random() < 0.35:
            user = asking(
                rng.choice(
                    ("{a} - {b}", "{a} minus {b}", "the result of {a} - {b}", "the difference of {a} and {b}")
                ).format(a=a, b=b),
                rng,
            )
        answer = answer_line(rng, f"{a} - {b}", a - b)
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
    user = rng.choice(MULTIPLY_FRAMES).format(a=a, b=b)
    if rng.random() < 0.35:
        user = asking(
            rng.choice(
                ("{a} * {b}", "{a} times {b}", "the result of {a} * {b}", "the product of {a} and {b}")
            ).format(a=a, b=b),
            rng,
        )
    answer = answer_line(rng, f"{a} * {b}", a * b)
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
        casual(user, rng), answer_line(rng, f"{a} / {b}", result), thought, f"{result}", f"{a} divided by {b}"
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
    answer = answer_line(rng, shown, totals[-1])
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
    answer = answer_line(rng, shown, result)
    return Exchange(casual(user, rng), answer, work, f"{result}", f"Calculating {shown}", aloud=work)
