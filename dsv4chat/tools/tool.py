"""A tool: a Python function the model may call, with a JSON schema made of its signature and docstring."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired, Required, get_type_hints

import docstring_parser
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic_core import to_json
from typing_extensions import TypedDict

from dsv4chat.tools.errors import ToolError, ToolUnusable

_NO_SCHEMA = (
    PydanticSchemaGenerationError,
    PydanticUserError,
    docstring_parser.ParseError,
    NameError,
    TypeError,
    ValueError,
)
_make_typed_dict: Any = TypedDict  # its functional form, with fields known only while the program runs
_ORDER = {"type": 0, "description": 1}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class Tool:
    """One tool. `definition` is what the model is told: name, description, parameters (a JSON schema)."""

    definition: dict[str, Any]
    function: Callable[..., Any]
    parameters: TypeAdapter[dict[str, Any]]

    @property
    def name(self) -> str:
        return str(self.definition["name"])

    def checked(self, arguments: str) -> dict[str, Any]:
        """The keyword arguments in a JSON text. ToolError, in words for the model, if they do not fit."""
        try:
            return self.parameters.validate_json(arguments)
        except ValidationError as error:
            raise ToolError("; ".join(map(_complaint, error.errors()))) from None


def tool_from_function(function: Callable[..., Any]) -> Tool:
    """Make a tool of a function, also an async one.

    Its docstring's first paragraphs describe it, the parameters' lines there (Google, NumPy or reST style)
    describe them, type hints give the schema; what has a default may be left out. ToolUnusable otherwise.
    """
    name = str(getattr(function, "__name__", ""))
    if not _NAME.fullmatch(name):
        raise ToolUnusable(f"{name!r} cannot be a tool's name: use letters, digits, _ and -, at most 64.")
    try:
        documented = docstring_parser.parse(inspect.getdoc(function) or "")
        words = {one.arg_name: " ".join((one.description or "").split()) for one in documented.params}
        hints = get_type_hints(function, include_extras=True)
        fields = {
            parameter.name: _field(name, parameter, hints, words.get(parameter.name))
            for parameter in inspect.signature(function).parameters.values()
        }
        shape = _make_typed_dict("Parameters", fields)
        shape.__pydantic_config__ = ConfigDict(extra="forbid")
        adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(shape)
        schema = adapter.json_schema()
    except _NO_SCHEMA as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ToolUnusable(
            f"{name} cannot be a tool: its parameters have no JSON schema ({reason})."
        ) from None
    parameters = {
        "type": "object",
        "properties": {key: _plain(value) for key, value in schema.get("properties", {}).items()},
        "required": schema.get("required", []),
    }
    if "$defs" in schema:
        parameters["$defs"] = {key: _plain(value) for key, value in schema["$defs"].items()}
    definition = {
        "name": name,
        "description": (documented.description or "").strip(),
        "parameters": parameters,
    }
    return Tool(definition, function, adapter)


def result_text(value: Any) -> str:
    """What a function returned, as the model reads it: text as it is, nothing as "done", all else as JSON."""
    if value is None:
        return "done"
    return value if isinstance(value, str) else to_json(value, fallback=str).decode()


def _field(tool: str, parameter: inspect.Parameter, hints: Mapping[str, Any], words: str | None) -> Any:
    """The type of a parameter with its description, and whether it may be left out."""
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise ToolUnusable(
            f"{tool} cannot be a tool: its parameter {parameter.name} has no name to call it by."
        )
    if parameter.name not in hints:
        raise ToolUnusable(f"{tool} cannot be a tool: its parameter {parameter.name} needs a type hint.")
    hint = hints[parameter.name]
    if words:
        hint = Annotated[hint, Field(description=words)]
    if parameter.default is parameter.empty:
        return Required[hint]
    if isinstance(parameter.default, str | int | float):
        hint = Annotated[hint, Field(json_schema_extra={"default": parameter.default})]
    return NotRequired[hint]


def _plain(schema: Any) -> Any:
    """A schema in the order people write it, without titles and without null as another type."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {}
    for key in sorted(schema, key=lambda key: _ORDER.get(key, len(_ORDER))):
        value = schema[key]
        if key == "title" and isinstance(value, str):
            continue
        plain[key] = (
            {name: _plain(one) for name, one in value.items()} if key == "properties" else _plain(value)
        )
    others = [one for one in plain.get("anyOf", ()) if one != {"type": "null"}]
    if len(others) == 1:
        del plain["anyOf"]
        return _plain({**others[0], **plain})
    return plain


def _complaint(error: Mapping[str, Any]) -> str:
    where = ".".join(map(str, error["loc"]))
    if error["type"] == "missing":
        return f'the parameter "{where}" is missing'
    if error["type"] == "extra_forbidden":
        return f'there is no parameter "{where}"'
    if error["type"] == "json_invalid":
        return f"the arguments are not JSON: {error['msg']}"
    return f"{where}: {error['msg']}" if where else str(error["msg"])
