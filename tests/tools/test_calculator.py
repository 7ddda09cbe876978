"""The calculator against exact arithmetic, and against everything that is not arithmetic."""

import contextlib
import random
import time
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsv4chat.assets.training.data.tools import number_text
from dsv4chat.tools import ToolError
from dsv4chat.tools.calculator import calculator


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("17 * 24", "408"),
        ("0.1 + 0.2", "0.3"),
        ("12.5 * (3 + 4)", "87.5"),
        ("10 / 4", "2.5"),
        ("1 / 3", "0.3333333333"),
        ("2 ** 10", "1024"),
        ("2^10", "1024"),
        ("2 ** 0.5", "1.414213562"),
        ("-7 // 2", "-4"),
        ("-7 % 3", "2"),
        ("3 × 4 ÷ 5 − 1", "1.4"),
        ("10 ** 30 + 1", "1000000000000000000000000000001"),
        ("1e-400 * 1e400", "1"),
        ("1e-400", "1e-400"),
        ("(-1) ** 1000001", "-1"),
        ("+5", "5"),
    ],
)
def test_it_computes_exactly(expression: str, result: str) -> None:
    assert calculator(expression) == result


def test_random_expressions_have_the_value_of_exact_fractions() -> None:
    """The oracle builds each expression together with its value, so it parses nothing."""
    draw = random.Random(5)

    def make(depth: int) -> tuple[str, Fraction]:
        if depth == 0 or draw.random() < 0.2:
            number = Decimal(draw.randrange(10_000)).scaleb(-draw.randrange(4))
            return f"{number:f}", Fraction(number)
        (left, a), (right, b) = make(depth - 1), make(depth - 1)
        sign = draw.choice("+-*/")
        if sign == "/" and b == 0:
            sign = "+"
        value = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else a}[sign]
        return f"({left} {sign} {right})", value

    for _ in range(300):
        text, value = make(4)
        result = calculator(text)
        if value.denominator == 1:
            assert result == str(value.numerator)
        else:
            assert abs(Fraction(result) - value) <= abs(value) / 10**9


@pytest.mark.parametrize("value", [0.5, 2.0, 1 / 3, 1e14, 123456.789, 1e-7, -2.25])
def test_results_are_spelled_as_the_demo_model_learned_them(value: float) -> None:
    assert calculator(f"{Decimal(value):f}") == number_text(value)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("1 / 0", "division by zero"),
        ("5 % (2 - 2)", "division by zero"),
        ("0 ** -2", "division by zero"),
        ("(-8) ** (1 / 3)", "fractional exponent"),
        ("", "not an arithmetic expression"),
        ("1 +", "not an arithmetic expression"),
        ("1 if 2", "not an arithmetic expression"),
        ("\0", "not an arithmetic expression"),
        ("(" * 400 + "1" + ")" * 400, "not an arithmetic expression"),
        ("__import__('os').system('true')", "only numbers"),
        ("(1).real", "only numbers"),
        ("[x for x in (1, 2)]", "only numbers"),
        ("'a' * 3", "only numbers"),
        ("True + 1", "only numbers"),
        ("2j", "only numbers"),
        ("1 < 2", "only numbers"),
        ("9" * 1001, "longer than"),
    ],
)
def test_what_it_cannot_do_is_said(expression: str, reason: str) -> None:
    with pytest.raises(ToolError, match=reason):
        calculator(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "9**9**9",
        "9**9**9**9",
        "1e999999999",
        "10 ** 100000",
        "(10 ** 2000) ** 2",
        "(1/3) ** 9999999",
        "2 ** -99999999",
        "*".join(["(10**2000)"] * 80),
        "2 ** (10 ** 2000)",
        "1e2000 ** 0.5",
    ],
)
def test_what_would_take_for_ever_is_refused_at_once(expression: str) -> None:
    started = time.process_time()
    with pytest.raises(ToolError, match="too large"):
        calculator(expression)
    assert time.process_time() - started < 1.0


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789.eE+-*/%()^_ jx\n", max_size=60))
def test_any_text_gives_a_result_or_a_tool_error(expression: str) -> None:
    with contextlib.suppress(ToolError):
        Fraction(calculator(expression))
