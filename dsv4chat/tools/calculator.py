"""The calculator: exact arithmetic on decimal numbers, read by Python's own parser and never evaluated by it.

Numbers are fractions, so 0.1 + 0.2 is 0.3; only a power with a fractional exponent is a float. Every step is
bounded in digits, so no expression takes long or much memory.
"""

import ast
import operator
import warnings
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

from dsv4chat.tools.errors import ToolError

LONGEST = 1000  # characters of an expression
_MOST_DIGITS = 2400
_MOST_BITS = 8192  # of a numerator or denominator: about 2,400 digits
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "^": "**"})

_OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction | int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def calculator(expression: str) -> str:
    """Evaluate an arithmetic expression and return the exact result.

    Args:
        expression: For example 12.5 * (3 + 4). Operators: + - * / ** ( )
    """
    if len(expression) > LONGEST:
        raise ToolError(f"the expression is longer than {LONGEST} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the parser, about doubtful spellings such as 1if
            tree = ast.parse(expression.translate(_SIGNS).strip(), mode="eval")
        return number_text(_value(tree.body, expression))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ToolError(f"not an arithmetic expression: {expression.strip()[:60]}") from None
    except ZeroDivisionError:
        raise ToolError("division by zero") from None
    except OverflowError:
        raise ToolError("the result is too large") from None


def number_text(value: Fraction) -> str:
    """Whole numbers with all their digits and no point, others rounded to ten digits."""
    if value.denominator == 1:
        return str(value.numerator)
    try:
        number = float(value)
    except OverflowError:
        number = 0.0
    if number:
        return f"{number:.10g}"
    with localcontext(prec=10):
        return f"{(Decimal(value.numerator) / Decimal(value.denominator)).normalize():e}"


def _value(node: ast.expr, text: str) -> Fraction:
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return _number(node, text)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, text)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, text)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left, text), _value(right, text))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _bounded(Fraction(_OPERATORS[type(sign)](_value(left, text), _value(right, text))))
    raise ToolError("only numbers and the operators + - * / // % ** ( ) are understood")


def _number(node: ast.Constant, text: str) -> Fraction:
    if isinstance(node.value, int):
        return _bounded(Fraction(node.value))
    # From its spelling: as a float it would not be exact.
    line = text.translate(_SIGNS).strip().splitlines()[node.lineno - 1].encode()
    number = Decimal(line[node.col_offset : node.end_col_offset].decode())
    if number and abs(number.adjusted()) > _MOST_DIGITS:
        raise OverflowError
    return _bounded(Fraction(number))


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        if base < 0:
            raise ToolError("a negative number has no power with a fractional exponent")
        return Fraction(float(base) ** float(exponent))
    bits = max(base.numerator.bit_length(), base.denominator.bit_length()) - 1
    if abs(exponent) * bits > _MOST_BITS:
        raise OverflowError
    return _bounded(base**exponent.numerator)


def _bounded(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MOST_BITS:
        raise OverflowError
    return value
