"""Reading requests and writing answers as JSON, shared by `prompt` and `parse`. Bad input is a sentence."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import click

from dsv4chat.encoding import EncodingError


@contextmanager
def opened(source: str) -> Iterator[BinaryIO]:
    """A file, or standard input for "-", as bytes. EncodingError if it cannot be read."""
    if source == "-":
        if sys.stdin.isatty():
            click.echo("Reading from the terminal; end with Ctrl+D on a line of its own.", err=True)
        yield sys.stdin.buffer
        return
    try:
        file = open(source, "rb")  # noqa: SIM115  (closed below; only opening may fail with this sentence)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise EncodingError(
            f"{source} cannot be read: {reason}. Give a readable file, or - for input."
        ) from None
    with file:
        yield file


def decoded(raw: bytes) -> str:
    """UTF-8 text, without a byte order mark. EncodingError if it is not UTF-8."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise EncodingError(f"The input is not UTF-8 text (byte {error.start}); convert it first.") from None


def object_of(text: str, what: str) -> dict[str, Any]:
    """A JSON object. EncodingError if `text` is anything else."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise EncodingError(f"The {what} is not JSON: {error.msg} at {where}.") from None
    except (ValueError, RecursionError):
        raise EncodingError(
            f"The {what} is not usable JSON: it nests too deeply or holds a huge number."
        ) from None
    if not isinstance(value, dict):
        raise EncodingError(f"The {what} must be a JSON object.")
    return value


def write_json(value: dict[str, Any]) -> None:
    """One line on standard output, in UTF-8 whatever the locale, at once."""
    text = json.dumps(value, ensure_ascii=False)
    click.echo(text.encode("utf-8", "backslashreplace"))  # a half surrogate becomes its JSON escape


def answer_lines(source: str, what: str, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer each line; one that cannot be used gets {"error": sentence}. Empty lines are skipped."""
    with opened(source) as file:
        for raw in file:
            if not raw.strip():
                continue
            try:
                write_json(answer(object_of(decoded(raw), what)))
            except EncodingError as error:
                write_json({"error": str(error)})


def fail(error: EncodingError) -> click.ClickException:
    """The exception that prints the sentence on standard error and ends with code 1."""
    return click.ClickException(str(error))
