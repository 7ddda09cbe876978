"""Reading one tool call: it is checked, and its parameters become the JSON text of its arguments.

The pieces joined are always JSON and always what the finished call holds. A text value is passed on as it
arrives; a JSON value is kept until its end, because only then it is known whether it is JSON or has to be
quoted.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dsv4chat.encoding.conversation import ToolCall
from dsv4chat.encoding.events import Event, ToolCallArgument, ToolCallEnd, ToolCallStart
from dsv4chat.encoding.jsontext import parse_json

_LONGEST_STRAY = 2000  # characters of misplaced text that the error repeats


class CallReader:
    """One call being read. Methods return the events they cause."""

    def __init__(self, index: int, name: str, tools: Sequence[Mapping[str, Any]] | None) -> None:
        self._index = index
        self._name = name
        self._known: set[str] | None = None  # parameter names, where the tool's schema lists them
        self._seen: set[str] = set()
        self._parameter = ""
        self._json_value: list[str] | None = None
        self._in_value = False
        self._stray: list[str] = []
        self._arguments: list[str] = []
        self._errors: list[str] = []
        if tools is not None:
            self._check_tool(tools)

    def start(self) -> list[Event]:
        return [ToolCallStart(self._index, self._name)]

    def parameter(self, name: str | None, string: str | None) -> list[Event]:
        """A parameter begins. `string` is its attribute: "true" for text, "false" for JSON."""
        self._in_value = True
        self._parameter = name or ""
        if name is None:
            self._errors.append("A parameter has no name.")
        elif name in self._seen:
            self._errors.append(f'The parameter "{name}" is given twice.')
        elif self._known is not None and name not in self._known:
            known = ", ".join(sorted(self._known)) or "none"
            self._errors.append(
                f'The tool "{self._name}" has no parameter "{name}"; its parameters are: {known}.'
            )
        if string not in ("true", "false"):
            self._errors.append(
                f'The parameter "{self._parameter}" must say string="true" (text) or string="false" (JSON).'
            )
        opening = f"{', ' if self._arguments else '{'}{json.dumps(self._parameter, ensure_ascii=False)}: "
        self._seen.add(self._parameter)
        if string == "false":
            self._json_value = []
            return self._add(opening)
        return self._add(opening + '"')

    def value(self, text: str) -> list[Event]:
        if self._json_value is not None:
            self._json_value.append(text)
            return []
        return self._add(json.dumps(text, ensure_ascii=False)[1:-1])

    def end_parameter(self) -> list[Event]:
        self._in_value = False
        if self._json_value is None:
            return self._add('"')
        raw, self._json_value = "".join(self._json_value), None
        try:
            parse_json(raw)
            return self._add(raw)
        except ValueError as error:
            self._errors.append(
                f'The value of "{self._parameter}" is not JSON ({error}); for text, say string="true".'
            )
            return self._add(json.dumps(raw, ensure_ascii=False))

    def stray(self, text: str) -> None:
        """Text that stands outside of the parameters."""
        self._stray.append(text)

    def broken(self, error: str) -> None:
        self._errors.append(error)

    def end(self, error: str | None) -> tuple[list[Event], ToolCall]:
        """The call is over; `error` says what broke it off, if something did. No other fault is told then."""
        events: list[Event] = []
        if self._in_value:
            events += self.end_parameter()
        events += self._add("}" if self._arguments else "{}")
        if error is not None:
            self._errors = [error]
        stray = "".join(self._stray).strip()
        if stray:
            shown = stray if len(stray) <= _LONGEST_STRAY else stray[:_LONGEST_STRAY] + "..."
            self._errors.append(f"There is text outside of the parameters: {shown}")
        call = ToolCall(
            id=f"call_{self._index:02}",
            name=self._name,
            arguments="".join(self._arguments),
            valid=not self._errors,
            error=" ".join(self._errors) or None,
        )
        return [*events, ToolCallEnd(self._index, call)], call

    def _add(self, text: str) -> list[Event]:
        if not text:
            return []
        self._arguments.append(text)
        return [ToolCallArgument(self._index, text)]

    def _check_tool(self, tools: Sequence[Mapping[str, Any]]) -> None:
        functions = [tool.get("function", tool) for tool in tools]
        tool = next((function for function in functions if function.get("name") == self._name), None)
        if tool is None:
            names = ", ".join(str(function.get("name")) for function in functions) or "none"
            self._errors.append(f'There is no tool "{self._name}"; the tools are: {names}.')
            return
        schema = tool.get("parameters")
        if not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping):
            return
        if not schema.get("additionalProperties") and not schema.get("patternProperties"):
            self._known = set(schema["properties"])
