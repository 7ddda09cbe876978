"""Arithmetic without a tool: the mixture of all questions about numbers."""

from __future__ import annotations

from .chat import Exchange, Rng
from .number_questions import check, comparison, in_words, remainder, too_hard
from .sums import addition, division, mixed, multiplication, several, subtraction


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
