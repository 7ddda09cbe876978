"""What `dsv4chat history` prints and writes. On a terminal control characters are shown, not obeyed."""

import json
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO

import click

from dsv4chat.exchange import WholeConversation, whole_file, write_json, write_markdown
from dsv4chat.store import ConversationSummary, Found, MessageRecord
from dsv4chat.visible import visible

_SPEAKERS = {"system": "System", "user": "You", "assistant": "Assistant", "tool": "Tool result"}


def summaries(lines: Sequence[ConversationSummary], as_json: bool) -> None:
    """One line a conversation: its number, when it was used last, how many messages, its title."""
    for line in lines:
        if as_json:
            _write(json.dumps(asdict(line), ensure_ascii=False) + "\n")
        else:
            title = _one_line(line.title or line.preview) or "(no title)"
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(line.updated))
            click.echo(f"{line.id:>6}  {when}  {line.messages:>5}  {title}")


def found(hits: Sequence[Found], as_json: bool) -> None:
    """Two lines a message: the conversation's number and title, and an excerpt."""
    for hit in hits:
        if as_json:
            _write(json.dumps(asdict(hit), ensure_ascii=False) + "\n")
            continue
        speaker = _SPEAKERS[hit.role] + (", thinking" if hit.where == "reasoning" else "")
        click.echo(
            click.style(f"{hit.conversation:>6}", bold=True)
            + f"  {_one_line(hit.title) or '(no title)'}\n        {speaker}: {_marked(hit)}"
        )


def conversation(whole: WholeConversation, thinking: bool, as_json: bool) -> None:
    """The branch that is shown, as text to read or as one JSON object."""
    path = whole.active_path()
    if as_json:
        shown = replace(whole, messages=path, figures={})
        _write(b"".join(write_json([shown], many=False)).decode())
        return
    click.secho(_one_line(whole.record.title) or "(no title)", bold=True)
    others = len(whole.messages) - len(path)
    if others:
        click.echo(f"({others} more in other branches)")
    if whole.record.settings.system:
        _part("System", whole.record.settings.system)
    for message in path:
        _message(message, thinking)


def export_json(wholes: Iterable[WholeConversation], target: str, *, many: bool, force: bool) -> None:
    """One JSON value to a file, or to standard output for "-"."""
    if target == "-" and sys.stdout.isatty():
        _write(b"".join(write_json(wholes, many=many)).decode())
        return
    with _target(target, force) as file:
        for piece in write_json(wholes, many=many):
            file.write(piece)


def export_markdown(whole: WholeConversation, target: str, *, force: bool) -> None:
    """One conversation to a file, or to standard output for "-"."""
    if target == "-" and sys.stdout.isatty():
        _write(write_markdown(whole).decode())
        return
    with _target(target, force) as file:
        file.write(write_markdown(whole))


def export_folder(wholes: Iterable[tuple[int, WholeConversation]], folder: Path, *, force: bool) -> None:
    """A Markdown file for each conversation, named by its number and title."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, whole in wholes:
        words = re.findall(r"[^\W_]+", whole.record.title)[:8]
        name = "-".join([str(number), *words])[:80]
        export_markdown(whole, str(folder / f"{name}.md"), force=force)


def imported(file: str, added: Sequence[tuple[int, str]], as_json: bool) -> None:
    """Which conversations came out of a file."""
    for number, title in added:
        if as_json:
            _write(json.dumps({"file": file, "id": number, "title": title}, ensure_ascii=False) + "\n")
        else:
            click.echo(f"{number:>6}  {_one_line(title) or '(no title)'}")


def _message(message: MessageRecord, thinking: bool) -> None:
    state = "" if message.state == "complete" else f" ({message.state})"
    if message.reasoning and thinking:
        _part("Thinking", message.reasoning)
    _part(_SPEAKERS[message.role] + state, message.content)
    for call in message.tool_calls:
        _part("Tool call", f"{call.name} {call.arguments}")
    if message.error:
        _part("Error", message.error)


def _part(name: str, text: str) -> None:
    click.secho(f"\n{name}:", bold=True)
    if text:
        _write(text.rstrip("\n") + "\n")


def _marked(hit: Found) -> str:
    """The excerpt with the words that were looked for in bold."""
    pieces, end = [], 0
    for start, stop in hit.marks:
        pieces += [visible(hit.excerpt[end:start]), click.style(visible(hit.excerpt[start:stop]), bold=True)]
        end = stop
    return "".join(pieces) + visible(hit.excerpt[end:])


def _one_line(text: str) -> str:
    return visible(" ".join(text.split()))


def _write(text: str) -> None:
    """In UTF-8 whatever the locale; on a terminal with nothing in it that the terminal would obey."""
    click.echo((visible(text) if sys.stdout.isatty() else text).encode("utf-8", "replace"), nl=False)


@contextmanager
def _target(name: str, force: bool) -> Iterator[IO[bytes]]:
    """Standard output for "-", else a file that is there whole or not at all."""
    if name == "-":
        yield sys.stdout.buffer
        return
    path = Path(name).resolve()
    if path.exists() and not path.is_file():
        with path.open("wb") as device:
            yield device
        return
    try:
        with whole_file(path, replace=force) as file:
            yield file
    except FileExistsError:
        raise click.ClickException(f"{path} is there already; add --force to replace it.") from None
