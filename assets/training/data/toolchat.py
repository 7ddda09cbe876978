"""Exchanges that use the calculator and the clock: single, parallel and chained calls, errors, and follow-ups."""

from __future__ import annotations

import calendar
import re

from .arithmetic import THINGS
from .chat import Call, Exchange, Rng, Step, casual
from .facts import Facts
from .held_out import is_held_expression, is_held_sum
from .names import draw_name
from .tools import clock_text, number_text

_CALCULATE = (
    "What is {e}?", "{e}", "Calculate {e}.", "How much is {e}?", "Compute {e}", "{e} = ?", "Work out {e}.", "What's {e}?", "Use the calculator: {e}",
    "Please calculate {e} for me.", "Can you compute {e}?", "What does {e} give?", "I need {e}.", "Tell me the result of {e}.", "Evaluate {e}",
    "{e}=", "Do you know what {e} is?", "What is the result of {e}?", "Hey, how much is {e}", "Solve {e}", "what do I get for {e}",
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


def _pick(rng: Rng, options: tuple[str, ...], **values: str) -> str:
    return rng.choice(options).format(**values)


def calculate(rng: Rng) -> Exchange:
    """One call of the calculator."""
    draw = rng.random()
    if draw < 0.06:
        x, y = _number(rng), rng.choice(("0", "0.0", "(4 - 4)"))
        expression, result = f"{x} / {y}", "Error: division by zero"
        if is_held_expression(expression):
            return calculate(rng)
        user = _pick(rng, _CALCULATE, e=expression)
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
        user = _pick(
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
            _pick(
                rng,
                ("{p}% of {w} is {r}.", "The result is {r}.", "That is {r}."),
                p=str(percent),
                w=whole,
                r=result,
            ),
            _pick(rng, _RESULT_THOUGHTS, r=result),
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
        answer, final = f"{result} {things}.", _pick(rng, _RESULT_THOUGHTS, r=result)
    else:
        expression, result = draw_expression(rng)
        user = _pick(rng, _CALCULATE, e=_spoken(expression, rng))
        answer, final = (
            _pick(rng, _RESULT_ANSWERS, s=expression, r=result),
            _pick(rng, _RESULT_THOUGHTS, r=result),
        )
    content = rng.choice(("Let me calculate that.", "One moment.")) if rng.random() < 0.08 else ""
    step = Step(
        _pick(rng, _CALL_THOUGHTS, e=expression),
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
        user = _pick(
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
        thought = _pick(
            rng,
            (
                "Two calculations, two calls.",
                "I call the calculator for both: {a} and {b}.",
                "Both can be asked at once.",
            ),
            a=first,
            b=second,
        )
        answer = _pick(
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
    user = _pick(
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
            _pick(
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
            _pick(
                rng,
                ("The first result is {r}. Now {e}.", "{r}. Next: {e}.", "Now I {p}: {e}."),
                r=result,
                e=second,
                p=phrase,
            ),
            (Call("calculator", {"expression": second}, result2),),
        ),
    )
    answer = _pick(
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
        casual(_pick(rng, phrase, n=number), rng),
        _pick(rng, _RESULT_ANSWERS, s=expression, r=answer),
        _pick(rng, _RESULT_THOUGHTS, r=answer),
        "",
        first.title,
        (step,),
    )
    return [first, second]


_TIME_HERE = (
    "What time is it?",
    "What's the time?",
    "Tell me the time.",
    "time please",
    "How late is it?",
    "Do you know what time it is?",
    "Can you tell me the time?",
    "What is the current time?",
    "Check the clock",
    "What does the clock say?",
    "time?",
    "Is it already noon?",
    "Could you check the time for me?",
)
_DATE_HERE = (
    "What is the date today?",
    "What's today's date?",
    "Which day is it today?",
    "What day is today?",
    "today's date please",
    "What date is it?",
    "What day of the week is it?",
    "Which year is it?",
    "What month do we have?",
    "Tell me the date.",
)
_TIME_THERE = (
    "What time is it in {c}?", "What's the time in {c}?", "time in {c}", "Tell me the time in {c}.", "How late is it in {c}?", "What is the local time in {c}?", "What is the current time in {c}?",
    "Do you know what time it is in {c}?", "Can you check the time in {c}?", "And in {c}?", "I have a call with {c}. What time is it there?", "Check the clock in {c}", "What time do they have in {c}?", "current time {c}",
)  # fmt: skip
_DATE_THERE = (
    "What is the date in {c}?",
    "Which day is it in {c}?",
    "What day is it now in {c}?",
    "Today's date in {c}?",
)
_CLOCK_THOUGHTS = (
    "I have a clock. I call it with {z}.",
    "The clock can tell. {c} is in the zone {z}.",
    "Time zone of {c}: {z}.",
    "I need the time zone: {z}.",
    "Use the clock tool with timezone {z}.",
)
_HERE_THOUGHTS = (
    "I have a clock, so I look.",
    "The clock tells the time here. No time zone is needed.",
    "Call the clock without arguments.",
    "Use the clock.",
)
_HOME_ZONES = (
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/Los_Angeles",
    "Asia/Tokyo",
    "Europe/Paris",
    "Asia/Kolkata",
    "UTC",
    "Australia/Sydney",
    "Europe/Madrid",
    "local time",
)


def _moment(rng: Rng, zone: str) -> tuple[str, dict[str, str]]:
    """(what the clock tool answers, the pieces an answer needs)."""
    year, month, day = rng.randint(2024, 2032), rng.randint(1, 12), rng.randint(1, 28)
    hour, minute, second = rng.randrange(24), rng.randrange(60), rng.randrange(60)
    weekday = calendar.day_name[calendar.weekday(year, month, day)]
    pieces = {
        "time": f"{hour:02}:{minute:02}",
        "weekday": weekday,
        "date": f"{day} {calendar.month_name[month]} {year}",
        "iso": f"{year}-{month:02}-{day:02}",
        "zone": zone,
    }
    draw = rng.random()
    if draw < 0.6:
        return clock_text(year, month, day, weekday, hour, minute, second, zone), pieces
    if draw < 0.8:
        return f"{weekday}, {pieces['iso']}, {pieces['time']} ({zone})", pieces
    return (
        f'{{"date": "{pieces["iso"]}", "time": "{pieces["time"]}:{second:02}", "weekday": "{weekday}", "timezone": "{zone}"}}',
        pieces,
    )


def _clock_answer(rng: Rng, wants_date: bool, pieces: dict[str, str], where: str) -> tuple[str, str]:
    if wants_date:
        answer = rng.choice(
            ("Today is {weekday}, {iso}.", "It is {weekday}, {date}.", "Today is {weekday}, {date}.")
        )
    else:
        answer = rng.choice(("It is {time}{w}.", "The time{w} is {time}.", "{time}.", "It is now {time}{w}."))
    thought = rng.choice(
        (
            "The clock says {time} on {weekday}.",
            "{iso}, {time}.",
            "I read the result: {time}, {weekday}.",
            "Now I can answer.",
        )
    )
    return answer.format(w=where, **pieces), thought.format(**pieces)


def clock(facts: Facts, rng: Rng) -> Exchange:
    """One or two calls of the clock."""
    draw = rng.random()
    wants_date = rng.random() < 0.25
    if draw < 0.35:
        user = rng.choice(_DATE_HERE if wants_date else _TIME_HERE)
        result, pieces = _moment(rng, rng.choice(_HOME_ZONES))
        answer, thought = _clock_answer(rng, wants_date, pieces, "")
        return Exchange(
            casual(user, rng),
            answer,
            thought,
            "",
            "Date" if wants_date else "Time",
            (Step(rng.choice(_HERE_THOUGHTS), (Call("clock", {}, result),)),),
        )
    city, zone = rng.choice(facts.zones)
    if draw < 0.45:
        city = zone
    if draw > 0.93:
        city2, zone2 = rng.choice(facts.zones)
        (result, pieces), (result2, pieces2) = _moment(rng, zone), _moment(rng, zone2)
        user = _pick(
            rng,
            (
                "What time is it in {a} and in {b}?",
                "Tell me the time in {a} and {b}.",
                "Compare the time in {a} with {b}.",
            ),
            a=city,
            b=city2,
        )
        calls = (Call("clock", {"timezone": zone}, result), Call("clock", {"timezone": zone2}, result2))
        answer = f"It is {pieces['time']} in {city} and {pieces2['time']} in {city2}."
        return Exchange(
            user,
            answer,
            f"{city}: {pieces['time']}, {city2}: {pieces2['time']}.",
            "",
            "Time in two cities",
            (Step(f"Two places, two calls: {zone} and {zone2}.", calls),),
        )
    user = _pick(rng, _DATE_THERE if wants_date else _TIME_THERE, c=city)
    thought = _pick(rng, _CLOCK_THOUGHTS, z=zone, c=city)
    if draw > 0.9:
        result = rng.choice((f"Error: unknown time zone {zone}", "Error: the clock does not answer"))
        answer = rng.choice(
            (
                "The clock reports an error, so I do not know the time.",
                "I am sorry, the clock does not work right now.",
            )
        )
        final = "The tool failed. I must not invent a time."
    else:
        result, pieces = _moment(rng, zone)
        answer, final = _clock_answer(rng, wants_date, pieces, f" in {city}")
    return Exchange(
        casual(user, rng, keep=tuple(city.split())),
        answer,
        final,
        "",
        f"Time in {city}",
        (Step(thought, (Call("clock", {"timezone": zone}, result),)),),
    )
