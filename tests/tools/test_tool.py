"""Functions as tools: their schema, their arguments, their results, and where they come from."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from dsv4chat.assets.training.data.tools import CALCULATOR, CLOCK
from dsv4chat.tools import ToolError, ToolUnusable, builtin_tools, load_toolbox, tool_from_function
from dsv4chat.tools.tool import result_text


@dataclass
class Place:
    city: str
    country: str = "FR"


def forecast(
    place: Place, days: int = 3, unit: Literal["C", "F"] | None = None, tags: list[str] | None = None
) -> str:
    """Tell the weather.

    For up to two weeks.

    Args:
        place: Where it is
            to be told.
        days: How many days.
    """
    return f"{place.city}, {days}, {unit}, {tags}"


def test_the_built_in_tools_are_the_ones_the_demo_model_was_trained_on() -> None:
    defined = [json.dumps(tool.definition) for tool in builtin_tools()]
    assert defined == [json.dumps(CALCULATOR), json.dumps(CLOCK)]


def test_a_schema_comes_from_signature_and_docstring() -> None:
    assert tool_from_function(forecast).definition == {
        "name": "forecast",
        "description": "Tell the weather.\n\nFor up to two weeks.",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"description": "Where it is to be told.", "$ref": "#/$defs/Place"},
                "days": {"type": "integer", "description": "How many days.", "default": 3},
                "unit": {"type": "string", "enum": ["C", "F"]},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["place"],
            "$defs": {
                "Place": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "city": {"type": "string"},
                        "country": {"type": "string", "default": "FR"},
                    },
                    "required": ["city"],
                }
            },
        },
    }


def test_arguments_are_checked_and_become_python_values() -> None:
    tool = tool_from_function(forecast)
    arguments = tool.checked('{"place": {"city": "Lyon"}, "days": "4", "unit": null}')
    assert arguments == {"place": Place("Lyon"), "days": 4, "unit": None}
    assert tool.function(**arguments) == "Lyon, 4, None, None"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("{}", 'the parameter "place" is missing'),
        ('{"place": {"city": "x"}, "when": 1}', 'there is no parameter "when"'),
        ('{"place": {"city": "x"}, "days": "many"}', "days: .*integer"),
        ('{"place": {"city": "x"}, "unit": "K"}', "unit"),
        ('{"place": {}}', 'the parameter "place.city" is missing'),
        ("[1]", "object"),
        ("{", "not JSON"),
        ("", "not JSON"),
    ],
)
def test_arguments_that_do_not_fit_are_explained(arguments: str, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        tool_from_function(forecast).checked(arguments)


def parameter_names_of_its_own(json: int, copy: str = "", title: str = "", schema: float = 0.5) -> None:
    """Names that libraries use themselves."""


def test_any_parameter_name_will_do() -> None:
    properties = tool_from_function(parameter_names_of_its_own).definition["parameters"]["properties"]
    assert list(properties) == ["json", "copy", "title", "schema"]


def no_hint(x):  # type: ignore[no-untyped-def]
    pass


def no_schema(x: type[object].__class__) -> None:  # type: ignore[valid-type]
    pass


def unknown_type(x: "Nowhere") -> None:  # type: ignore[name-defined]  # noqa: F821
    pass


def many(*x: int) -> None:
    pass


class Odd:
    """Nothing JSON could be."""


def odd(x: Odd) -> None:
    pass


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (no_hint, "needs a type hint"),
        (unknown_type, "no JSON schema"),
        (many, "no name to call it by"),
        (odd, "no JSON schema"),
        (lambda x: x, "cannot be a tool's name"),
        (print, "cannot be a tool"),
        (int, "cannot be a tool"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_a_reason(function: Any, reason: str) -> None:
    with pytest.raises(ToolUnusable, match=reason):
        tool_from_function(function)


@pytest.mark.parametrize(
    ("value", "text"),
    [("x", "x"), (None, "done"), (3, "3"), ({"a": [1, 2.5]}, '{"a":[1,2.5]}'), (Place("Lyon"), '"Lyon"')],
)
def test_results_become_text(value: object, text: str) -> None:
    assert text in result_text(value) or json.loads(result_text(value)) == {"city": "Lyon", "country": "FR"}


def test_tools_come_from_the_settings_folder_from_any_file_and_from_modules(tmp_path: Path) -> None:
    (tmp_path / "weather.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass P:\n    city: str\n"
        'def weather(place: P) -> str:\n    """Tell the weather."""\n    return place.city\n'
    )
    toolbox = load_toolbox(["weather.py:weather", "tests.tools.test_tool:forecast"], tmp_path)
    assert toolbox.names == ("calculator", "clock", "weather", "forecast")
    assert toolbox.troubles == ()
    weather = toolbox.get("weather")
    assert weather is not None
    assert weather.function(**weather.checked('{"place": {"city": "Lyon"}}')) == "Lyon"


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("weather", "module:function"),
        ("weather.py:", "module:function"),
        ("missing.py:f", "cannot be loaded"),
        ("no.such.module:f", "cannot be loaded"),
        ("broken.py:f", "SyntaxError"),
        ("exits.py:f", "RuntimeError: no"),
        ("good.py:g", "no function g"),
        ("good.py:number", "no function number"),
        ("good.py:calculator", "already a tool calculator"),
    ],
)
def test_a_place_that_cannot_be_used_is_left_out_and_named(tmp_path: Path, place: str, reason: str) -> None:
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "exits.py").write_text("raise RuntimeError('no')\n")
    (tmp_path / "good.py").write_text(
        "number = 3\ndef f() -> int:\n    return 1\ndef calculator() -> int:\n    return 1\n"
    )
    toolbox = load_toolbox([place, "good.py:f"], tmp_path)
    assert toolbox.names == ("calculator", "clock", "f")
    (trouble,) = toolbox.troubles
    assert place in trouble
    assert reason in trouble
