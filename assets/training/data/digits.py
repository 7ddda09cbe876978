"""Adding and subtracting digit by digit from the right, as a person does on paper."""

from __future__ import annotations

from .chat import Rng

_PLACES = ("ones", "tens", "hundreds", "thousands", "ten thousands")


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
