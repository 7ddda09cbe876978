"""Exchanges that use the calculator: single, parallel and chained calls, errors, and follow-ups."""

from __future__ import annotations

import re

from .chat import Call, Exchange, Rng, Step, casual, pick
from .held_out import is_held_expression, is_held_sum
from .names import draw_name
from .phrasing import asking, surrounded
from .sums import THINGS
from .tools import number_text

_CALCULATE = (
    "What is {e}?", "{e}", "Calculate {e}.", "How much is {e}?", "Compute {e}", "{e} = ?", "Work out {e}.", "What's {e}?", "Use the calculator: {e}",
    "Please calculate {e} for me.", "Can you compute {e}?", "What does {e} give?", "I need {e}.", "Tell me the result of {e}.", "Evaluate {e}",
    "{e}=", "Do you know what {e} is?", "What is the result of {e}?", "Hey, how much is {e}", "Let the calculator do this: {e}", "I want to know how much {e} is.", "Could you please work out {e}?", "My boss needs {e}. What is it?", "Find {e}", "Maths test: {e}", "Give me {e} exactly.", "Run {e} through the calculator", "Help me with {e}", "Type {e} into your calculator", "Solve {e}", "what do I get for {e}",
)  # fmt: skip
_CALL_THOUGHTS = (
    "I have a calculator. The expression is {e}.", "This is a calculation, so I call the calculator with {e}.", "I should not do this in my head. calculator: {e}",
    "The calculator can do that exactly.", "Arithmetic: use the tool. {e}", "Which tool fits? The calculator. Argument: {e}", "I will let the calculator work out {e}.",
)  # fmt: skip
_RESULT_THOUGHTS = (
    "The result is {r}.",
    "The calculator says {r}. I pass it on.",
    "Now I know it: {r}.",
    "Done, {r}.",
    "I have the result and can answer.",
)
_RESULT_ANSWERS = (
    "{s} = {r}.",
    "The result is {r}.",
    "{s} is {r}.",
    "That is {r}.",
    "{s} = {r}",
    "It is {r}.",
    "The calculator says {r}.",
)


def _number(rng: Rng) -> str:
    draw = rng.random()
    if draw < 0.3:
        return str(rng.randint(2, 99))
    if draw < 0.75:
        return str(rng.randint(100, 10 ** rng.randint(3, 6)))
    places = rng.randint(1, 2)
    return f"{rng.randint(1, 99999) / 10**places:.{places}f}"


def _sums_held(expression: str) -> bool:
    """Whether two held-out numbers are added anywhere in the expression."""
    return any(
        is_held_sum(int(x), int(y))
        for x, y in re.findall(r"(?<![\d.])(\d+) \+ (?=(\d+)(?![\d.]))", expression)
    )


def _draw_expression(rng: Rng) -> str:
    draw = rng.random()
    op, op2 = rng.choice("+-**/"), rng.choice("+-*/")
    x, y, z = _number(rng), _number(rng), _number(rng)
    if draw < 0.5:
        return f"{x} {op} {y}"
    if draw < 0.66:
        return f"{x} {op} {y} {op2} {z}"
    if draw < 0.78:
        return f"({x} {op} {y}) {op2} {z}"
    if draw < 0.88:
        return f"{x} {op2} ({y} {op} {z})"
    if draw < 0.94:
        return f"{rng.randint(2, 25)} ** {rng.randint(2, 6)}"
    return f"({x} {op} {y}) * ({z} {op2} {rng.randint(2, 99)})"


def evaluate(expression: str) -> str:
    """The calculator's result as text. The expression is one that this module drew."""
    return number_text(eval(expression, {"__builtins__": {}}))


def draw_expression(rng: Rng, held: bool = False) -> tuple[str, str]:
    """(expression, result); held-out expressions only when `held`, else never."""
    while True:
        expression = _draw_expression(rng)
        if is_held_expression(expression) != held or (not held and _sums_held(expression)):
            continue
        try:
            return expression, evaluate(expression)
        except (ZeroDivisionError, OverflowError):
            continue


def _spoken(expression: str, rng: Rng) -> str:
    """The expression as a person writes it."""
    draw = rng.random()
    if draw < 0.5:
        return expression
    if draw < 0.68:
        return expression.replace(" ", "")
    if draw < 0.8:
        return (
            expression.replace(" * ", rng.choice((" x ", " × ")))
            .replace(" ** ", "^")
            .replace(" / ", rng.choice((" ÷ ", " : ", " / ")))
        )
    if "(" in expression:
        return expression
    words = {
        " ** ": " to the power of ",
        " * ": rng.choice((" times ", " multiplied by ")),
        " / ": " divided by ",
        " + ": " plus ",
        " - ": " minus ",
    }
    for sign, word in words.items():
        expression = expression.replace(sign, word)
    return expression


def calculate(rng: Rng) -> Exchange:
    """One call of the calculator."""
    draw = rng.random()
    if draw < 0.06:
        x, y = _number(rng), rng.choice(("0", "0.0", "(4 - 4)"))
        expression, result = f"{x} / {y}", "Error: division by zero"
        if is_held_expression(expression):
            return calculate(rng)
        user = pick(rng, _CALCULATE, e=expression)
        answer = rng.choice(
            (
                "The calculator reports an error: division by zero.",
                "That cannot be calculated: it is a division by zero.",
            )
        )
        final = "The tool reports an error. I say so."
    elif draw < 0.13:
        percent, whole = rng.randint(1, 99), _number(rng)
        expression = f"{whole} * {percent} / 100"
        if is_held_expression(expression):
            return calculate(rng)
        result = evaluate(expression)
        user = pick(
            rng,
            (
                "What is {p}% of {w}?",
                "How much is {p} percent of {w}?",
                "Calculate {p}% of {w}.",
                "{p}% of {w}",
            ),
            p=str(percent),
            w=whole,
        )
        answer, final = (
            pick(
                rng,
                ("{p}% of {w} is {r}.", "The result is {r}.", "That is {r}."),
                p=str(percent),
                w=whole,
                r=result,
            ),
            pick(rng, _RESULT_THOUGHTS, r=result),
        )
    elif draw < 0.22:
        things, name = rng.choice(THINGS), draw_name(rng)
        while True:
            x, y = rng.randint(2, 900), rng.randint(2, 900)
            op = rng.choice("+*-")
            expression = f"{max(x, y)} {op} {min(x, y)}"
            if not is_held_expression(expression) and not is_held_sum(x, y):
                break
        x, y = max(x, y), min(x, y)
        result = evaluate(expression)
        user = {
            "+": rng.choice(
                (
                    f"I have {x} {things} and buy {y} more. How many do I have?",
                    f"{name} has {x} {things} and gets {y} more. How many are that?",
                )
            ),
            "*": rng.choice(
                (
                    f"There are {x} boxes with {y} {things} each. How many {things} is that?",
                    f"{name} buys {x} bags of {y} {things}. How many in total?",
                )
            ),
            "-": rng.choice(
                (
                    f"I had {x} {things} and sold {y}. How many are left?",
                    f"{name} had {x} {things} and lost {y}. How many are left?",
                )
            ),
        }[op]
        answer, final = f"{result} {things}.", pick(rng, _RESULT_THOUGHTS, r=result)
    else:
        expression, result = draw_expression(rng)
        user = pick(rng, _CALCULATE, e=_spoken(expression, rng))
        if rng.random() < 0.4:
            nouns = (
                "{e}",
                "{e}",
                "the result of {e}",
                "the value of {e}",
                "the exact result of {e}",
                "what {e} is",
                "how much {e} is",
                "the answer to {e}",
            )
            user = asking(pick(rng, nouns, e=_spoken(expression, rng)), rng)
        user = surrounded(user, rng)
        answer, final = (
            pick(rng, _RESULT_ANSWERS, s=expression, r=result),
            pick(rng, _RESULT_THOUGHTS, r=result),
        )
    content = rng.choice(("Let me calculate that.", "One moment.")) if rng.random() < 0.08 else ""
    step = Step(
        pick(rng, _CALL_THOUGHTS, e=expression),
        (Call("calculator", {"expression": expression}, result),),
        content,
    )
    keep = ("plus", "minus", "times")
    return Exchange(
        casual(user, rng, keep=keep), answer, final, "", f"Calculating {expression}"[:48], (step,)
    )


def calculate_chain(rng: Rng) -> Exchange:
    """Two calls, the second one with the result of the first, or two independent ones at once."""
    first, result = draw_expression(rng)
    if rng.random() < 0.45:
        second, result2 = draw_expression(rng)
        calls = (
            Call("calculator", {"expression": first}, result),
            Call("calculator", {"expression": second}, result2),
        )
        user = pick(
            rng,
            (
                "What is {a} and what is {b}?",
                "Calculate {a} and {b}.",
                "{a} and also {b}, please",
                "I need two results: {a} and {b}.",
                "How much is {a}? And {b}?",
            ),
            a=first,
            b=second,
        )
        thought = pick(
            rng,
            (
                "Two calculations, two calls.",
                "I call the calculator for both: {a} and {b}.",
                "Both can be asked at once.",
            ),
            a=first,
            b=second,
        )
        answer = pick(
            rng,
            ("{a} = {r} and {b} = {q}.", "The results are {r} and {q}.", "{a} is {r}, and {b} is {q}."),
            a=first,
            b=second,
            r=result,
            q=result2,
        )
        return Exchange(
            user,
            answer,
            f"Both results are here: {result} and {result2}.",
            "",
            "Two calculations",
            (Step(thought, calls),),
        )
    while True:
        op, number = rng.choice("+-*/"), str(rng.randint(2, 999))
        second = f"{result} {op} {number}"
        if not is_held_expression(second) and not _sums_held(second):
            break
    result2 = evaluate(second)
    phrase = {
        "+": f"add {number}",
        "-": f"subtract {number}",
        "*": f"multiply the result by {number}",
        "/": f"divide the result by {number}",
    }[op]
    user = pick(
        rng,
        (
            "Calculate {a}, then {p}.",
            "What is {a}? Then {p}.",
            "First {a}, then {p}.",
            "Work out {a} and {p} afterwards.",
        ),
        a=first,
        p=phrase,
    )
    steps = (
        Step(
            pick(
                rng,
                (
                    "First {e}, then the rest.",
                    "Two steps. I begin with {e}.",
                    "I need the first result before I can go on: {e}.",
                ),
                e=first,
            ),
            (Call("calculator", {"expression": first}, result),),
        ),
        Step(
            pick(
                rng,
                ("The first result is {r}. Now {e}.", "{r}. Next: {e}.", "Now I {p}: {e}."),
                r=result,
                e=second,
                p=phrase,
            ),
            (Call("calculator", {"expression": second}, result2),),
        ),
    )
    answer = pick(
        rng,
        ("{a} = {r}, and {b} = {q}.", "The result is {q}.", "First {r}, then {q}."),
        a=first,
        b=second,
        r=result,
        q=result2,
    )
    return Exchange(user, answer, f"Both steps are done: {result2}.", "", "Two calculations", steps)


def calculate_follow_up(rng: Rng) -> list[Exchange]:
    """A calculation, and in the next turn one that starts from its result."""
    while True:
        first = calculate(rng)
        result = first.steps[0].calls[0].result
        if re.fullmatch(r"-?\d+(\.\d+)?", result):
            break
    while True:
        op, number = rng.choice("+-*/"), str(rng.randint(2, 999))
        expression = f"{result} {op} {number}"
        if not is_held_expression(expression) and not _sums_held(expression):
            break
    phrase = {
        "+": ("And plus {n}?", "Add {n} to that."),
        "-": ("And minus {n}?", "Subtract {n} from it."),
        "*": ("And times {n}?", "Multiply that by {n}."),
        "/": ("Divide it by {n}.", "And divided by {n}?"),
    }[op]
    answer = evaluate(expression)
    step = Step(
        f"The last result was {result}. So {expression}.",
        (Call("calculator", {"expression": expression}, answer),),
    )
    second = Exchange(
        casual(pick(rng, phrase, n=number), rng),
        pick(rng, _RESULT_ANSWERS, s=expression, r=answer),
        pick(rng, _RESULT_THOUGHTS, r=answer),
        "",
        first.title,
        (step,),
    )
    return [first, second]
