"""The tools of the application as the model sees them, and made-up ones so that it reads schemas.

`CALCULATOR` and `CLOCK` are the application's built-in tools: name, description and parameters are part of what
the model was trained on and must not change without training again.
"""

from __future__ import annotations

from typing import Any

CALCULATOR: dict[str, Any] = {
    "name": "calculator",
    "description": "Evaluate an arithmetic expression and return the exact result.",
    "parameters": {
        "type": "object",
        "properties": {
            "expression": {
                "type": "string",
                "description": "For example 12.5 * (3 + 4). Operators: + - * / ** ( )",
            }
        },
        "required": ["expression"],
    },
}
CLOCK: dict[str, Any] = {
    "name": "clock",
    "description": "Get the current date and time, here or in another time zone.",
    "parameters": {
        "type": "object",
        "properties": {
            "timezone": {
                "type": "string",
                "description": "IANA name such as Europe/Paris; left out: local time",
            }
        },
        "required": [],
    },
}


def number_text(value: float) -> str:
    """A result as the calculator prints it: whole numbers without a point, else at most ten digits."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.10g}"


def clock_text(
    year: int, month: int, day: int, weekday: str, hour: int, minute: int, second: int, zone: str
) -> str:
    """A result as the clock prints it: `2026-03-14 15:09:26 Saturday Europe/Paris`."""
    return f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} {weekday} {zone}"
