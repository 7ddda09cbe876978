"""JSON as it stands in a prompt: `", "` and `": "` between items, non-ASCII kept, numbers in one fixed
spelling.

Python's `json` differs in two ways that matter here: it reads `NaN` and `Infinity`, which are not JSON, and
it writes small numbers as `1e-05` where DeepSeek's encoder writes `0.00001` (and `1e-07` for `1e-7`).
"""

import json
import math
from typing import Any


def parse_json(text: str) -> Any:
    """The value of a JSON text. ValueError for all else, infinite numbers and half surrogates included."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except UnicodeEncodeError:
        raise ValueError("it holds half of a surrogate pair") from None
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def dump_json(value: Any) -> str:
    """`value` as prompt JSON. ValueError for NaN and infinities, TypeError for what JSON cannot hold."""
    try:
        return "".join(_pieces(value))
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text} is too large")
    return number


def _pieces(value: Any) -> list[str]:
    if isinstance(value, dict):
        out = ["{"]
        for i, (key, item) in enumerate(value.items()):
            if not isinstance(key, str):
                raise TypeError(f"a JSON key must be text, not {type(key).__name__}")
            out += [", " if i else "", json.dumps(key, ensure_ascii=False), ": ", *_pieces(item)]
        return [*out, "}"]
    if isinstance(value, list | tuple):
        out = ["["]
        for i, item in enumerate(value):
            out += [", " if i else "", *_pieces(item)]
        return [*out, "]"]
    if isinstance(value, float):
        return [_number(value)]
    return [json.dumps(value, ensure_ascii=False, allow_nan=False)]


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{value} cannot be written as JSON")
    text = repr(value)
    mantissa, small, exponent = text.partition("e-")
    if not small:
        return text
    if int(exponent) > 5:
        return f"{mantissa}e-{int(exponent)}"
    sign = "-" if mantissa.startswith("-") else ""
    return f"{sign}0.0000{mantissa.lstrip('-').replace('.', '')}"
