"""`dsv4chat parse`: the message in a raw completion."""

from typing import Any

import click

from dsv4chat.cli.lines import answer_lines, decoded, fail, object_of, opened, write_json
from dsv4chat.encoding import CompletionParser, EncodingError, tools_from_request

_EPILOG = """\b
Exit codes:
  0  done; with --jsonl every line but blank ones has been answered, bad ones with {"error": ...}
  1  the input cannot be read; the reason is on standard error
  2  wrong usage
"""


@click.command(epilog=_EPILOG)
@click.argument("file", default="-", metavar="[FILE|-]")
@click.option(
    "--think/--no-think",
    "thinking",
    default=True,
    help="Whether the turn opened with <think> (default: yes).",
)
@click.option(
    "--tools",
    "tools_file",
    metavar="FILE",
    help='A request, or {"tools": [...]}: calls are checked against it.',
)
@click.option(
    "--jsonl",
    is_flag=True,
    help='One completion a line: {"text": ..., "thinking": true}, or "pieces": [...] to stream them; '
    'optional "tools" and "finish_reason".',
)
def parse(file: str, thinking: bool, tools_file: str | None, jsonl: bool) -> None:
    """Print the message in a raw completion, as JSON.

    The completion is the text of FILE, or of standard input: all that the model said after the token that
    opened its turn. The answer has "finish_reason" and "message", an object with "content",
    "reasoning_content" and "tool_calls". A call that could not be accepted has "valid": false and an "error".
    """
    try:
        tools = None
        if tools_file is not None:
            with opened(tools_file) as source:
                tools = object_of(decoded(source.read()), "file of tools").get("tools")
        if jsonl:
            defaults = {"thinking": thinking, "tools": tools}
            answer_lines(file, "line", lambda line: _answer(defaults | line))
            return
        with opened(file) as source:
            text = decoded(source.read())
        write_json(_answer({"text": text, "thinking": thinking, "tools": tools}))
    except EncodingError as error:
        raise fail(error) from None


def _answer(line: dict[str, Any]) -> dict[str, Any]:
    pieces = line.get("pieces")
    if pieces is not None and line.get("text") is not None:
        raise EncodingError('Give a completion as "text" or as "pieces", not both.')
    if pieces is None:
        pieces = [line.get("text")]
    if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
        raise EncodingError('A completion needs "text", or "pieces": a list of texts.')
    thinking = line["thinking"]
    if not isinstance(thinking, bool):
        raise EncodingError('"thinking" must be true or false.')
    reason = line.get("finish_reason", "stop")
    if reason not in ("stop", "length", "stopped"):
        raise EncodingError('"finish_reason" must be stop, length or stopped.')
    tools = None if line["tools"] is None else tools_from_request(line["tools"])
    parser = CompletionParser(thinking, tools=tools)
    for piece in pieces:
        parser.push(piece)
    parser.finish(reason)
    message = parser.message()
    calls = []
    for index, call in enumerate(message.tool_calls):
        shown: dict[str, Any] = {
            "index": index,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        if not call.valid:
            shown |= {"valid": False, "error": call.error}
        calls.append(shown)
    return {
        "message": {
            "content": message.content,
            "reasoning_content": message.reasoning,
            "tool_calls": calls,
        },
        "finish_reason": parser.finish_reason,
    }
