"""DSML, the markup of tool calls: how calls are written into a prompt.

    <｜DSML｜tool_calls>
    <｜DSML｜invoke name="get_weather">
    <｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>
    <｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜tool_calls>

`｜DSML｜` is a control token, everything around it text: values are never escaped. A string value stands raw
(string="true"), any other value as JSON (string="false").
"""

from collections.abc import Sequence
from typing import Any

from dsv4chat.encoding.conversation import ToolCall
from dsv4chat.encoding.jsontext import dump_json, parse_json
from dsv4chat.encoding.segments import SegmentList
from dsv4chat.encoding.template import DSML

WRAPPER = "tool_calls"
INVOKE = "invoke"
PARAMETER = "parameter"


def write_calls(out: SegmentList, calls: Sequence[ToolCall]) -> None:
    """Append a blank line and the block of `calls`; the end-of-sentence token follows it directly."""
    out.text("\n\n")
    _tag(out, "<", f"{WRAPPER}>\n")
    for call in calls:
        _tag(out, "<", f'{INVOKE} name="{call.name}">\n')
        for name, value in _arguments(call.arguments).items():
            raw = isinstance(value, str)
            _tag(out, "<", f'{PARAMETER} name="{name}" string="{"true" if raw else "false"}">')
            out.text(value if raw else dump_json(value))
            _tag(out, "</", f"{PARAMETER}>\n")
        _tag(out, "</", f"{INVOKE}>\n")
    _tag(out, "</", f"{WRAPPER}>")


def _tag(out: SegmentList, opening: str, rest: str) -> None:
    out.text(opening)
    out.control(DSML)
    out.text(rest)


def _arguments(text: str) -> dict[str, Any]:
    """The arguments of a call; what is not a JSON object becomes one text parameter named `arguments`."""
    try:
        value = parse_json(text)
    except ValueError:
        return {"arguments": text}
    return value if isinstance(value, dict) else {"arguments": text}
