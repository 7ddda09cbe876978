"""`dsv4chat prompt`: the exact prompt of a chat-completion request."""

import json
from pathlib import Path
from typing import Any

import click

from dsv4chat.assets import demo_path
from dsv4chat.cli.lines import answer_lines, decoded, fail, object_of, opened
from dsv4chat.encoding import (
    EncodingError,
    Profile,
    Tokenizer,
    conversation_from_request,
    detect_profile,
    render,
)

_EPILOG = """\b
Exit codes:
  0  done; with --jsonl every line but blank ones has been answered, bad ones with {"error": ...}
  1  the request, the file or the model's tokenizer cannot be used; the reason is on standard error
  2  wrong usage
"""


@click.command(epilog=_EPILOG)
@click.argument("file", default="-", metavar="[FILE|-]")
@click.option(
    "--ids", "as_ids", is_flag=True, help="Print the token ids, as a JSON list, instead of the text."
)
@click.option(
    "--jsonl", is_flag=True, help='One request a line; each answered with {"text": ..., "ids": ...}.'
)
@click.option(
    "--profile",
    type=click.Choice(["preview", "current"]),
    help="The prompt profile (default: what the model says of itself).",
)
@click.option(
    "--model", metavar="DIR|demo", default="demo", help="Whose tokenizer and profile to use (default: demo)."
)
def prompt(file: str, as_ids: bool, jsonl: bool, profile: str | None, model: str) -> None:
    """Print the exact prompt of a chat-completion request body.

    The body is the JSON of FILE, or of standard input: messages, tools, thinking, reasoning_effort and so on.
    The text is printed as it is, without a line break after it.
    """
    if as_ids and jsonl:
        raise click.UsageError("--jsonl gives text and ids at once; leave --ids out.")
    try:
        folder = _folder(model)
        chosen = _profile(folder, profile)
        if jsonl:
            _answer_all(file, folder, chosen)
            return
        with opened(file) as source:
            body = object_of(decoded(source.read()), "request")
        rendered = render(conversation_from_request(body), chosen)
        if as_ids:
            click.echo(json.dumps(Tokenizer.from_folder(folder).encode(rendered).ids))
        else:
            click.echo(rendered.text.encode("utf-8"), nl=False)
    except EncodingError as error:
        raise fail(error) from None


def _answer_all(file: str, folder: Path, profile: Profile) -> None:
    tokenizer: Tokenizer | None = None
    missing = ""
    try:
        tokenizer = Tokenizer.from_folder(folder)
    except EncodingError as error:
        missing = str(error)
        click.echo(f"Note: the answers have no ids. {missing}", err=True)

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        rendered = render(conversation_from_request(body), profile)
        if tokenizer is None:
            return {"text": rendered.text, "ids": None, "ids_error": missing}
        return {"text": rendered.text, "ids": tokenizer.encode(rendered).ids}

    answer_lines(file, "request", answer)


def _folder(model: str) -> Path:
    folder = demo_path() if model == "demo" else Path(model)
    if not folder.is_dir():
        raise EncodingError(f"There is no model folder {folder}; give the folder of a checkpoint, or demo.")
    return folder


def _profile(folder: Path, override: str | None) -> Profile:
    choice = detect_profile(folder, override)
    if choice.notice:
        click.echo(f"Note: {choice.notice}", err=True)
    return choice.profile
