"""`dsv4chat history`: the conversations kept on this machine. No engine and no model is needed."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dsv4chat.cli import history_output as output
from dsv4chat.exchange import ExchangeError, WholeConversation, read_conversations
from dsv4chat.paths import data_folder
from dsv4chat.saved_caches import remove_saved
from dsv4chat.store import Repository, StoreError, open_history
from dsv4chat.store.pages import HEADER
from dsv4chat.store.salvage import salvage

_EPILOG = """\b
ID is the number that `list` and `search` print, or `last`.

\b
Exit codes:
  0  done
  1  it could not be done; the reason is on standard error
  2  wrong usage
"""


class HistoryGroup(click.Group):
    """Commands whose errors are one sentence each; a reader that went away (`| head`) is none."""

    def invoke(self, ctx: click.Context) -> Any:
        if "NO_COLOR" in os.environ:
            ctx.color = False
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except (StoreError, ExchangeError) as error:
            raise click.ClickException(str(error)) from None
        except BrokenPipeError:
            # The interpreter flushes standard output once more at its end; let that go nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except OSError as error:
            name = f" {error.filename}" if error.filename else ""
            raise click.ClickException(f"It cannot be read or written:{name} {error.strerror}.") from None


@click.group(cls=HistoryGroup, epilog=_EPILOG)
def history() -> None:
    """List, search, show, export, import and delete conversations."""


@history.command("list")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@click.option("--all", "everything", is_flag=True, help="All of them.")
@click.option("--deleted", is_flag=True, help="Those that were deleted and can still be brought back.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def list_(limit: int, everything: bool, deleted: bool, as_json: bool) -> None:
    """List the conversations, the one used last first."""
    with _history() as store:
        found = store.summaries(10**9 if everything else limit + 1, deleted=deleted)
    shown = found if everything else found[:limit]
    output.summaries(shown, as_json)
    if not as_json and not found:
        click.echo("There are none.", err=True)
    elif len(shown) < len(found) and not as_json:
        click.echo(f"There are more; --all lists them, --limit more than {limit}.", err=True)


@history.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many.")
@click.option("--in", "within", metavar="ID", help="In this conversation only.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def search(words: Sequence[str], limit: int, within: str | None, as_json: bool) -> None:
    """Find messages, also in the thinking and in other branches, the newest first.

    All WORDS must be there; the last one may be a beginning. A WORD with spaces in it is a phrase.
    """
    asked = " ".join(f'"{word}"' if " " in word and '"' not in word else word for word in words)
    with _history() as store:
        conversation = None if within is None else _number(store, within)
        found = store.search(asked, limit, conversation=conversation)
    output.found(found, as_json)
    if not found and not as_json:
        click.echo("Nothing was found.", err=True)


@history.command()
@click.argument("conversation", metavar="ID")
@click.option("--thinking", is_flag=True, help="The thinking, too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def show(conversation: str, thinking: bool, as_json: bool) -> None:
    """Print the branch of a conversation that the app shows."""
    with _history() as store:
        whole = WholeConversation.of(store, _number(store, conversation), figures=False)
    output.conversation(whole, thinking, as_json)


@history.command()
@click.argument("conversations", metavar="ID...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All conversations.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "markdown"]),
    help="json: all branches and figures, nothing lost. markdown: the branch that is shown. Default: what "
    "the name of the output ends with, or markdown.",
)
@click.option("-o", "--output", "target", metavar="FILE|DIR|-", default="-", help="Where to (default: here).")
@click.option("--no-figures", is_flag=True, help="Leave out what was measured for each token.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def export(
    conversations: Sequence[str],
    everything: bool,
    form: str | None,
    target: str,
    no_figures: bool,
    force: bool,
) -> None:
    """Write conversations as JSON or Markdown.

    Several in Markdown need a folder, one file each, and one may go into a folder that is there; several in
    JSON are one list.
    """
    if bool(conversations) == everything:
        raise click.UsageError("Give the ID of a conversation, several of them, or --all.")
    as_json = form == "json" or (form is None and target.endswith(".json"))
    with _history() as store:
        if everything:
            numbers = [summary.id for summary in store.summaries(10**9)]
        else:
            numbers = [_number(store, conversation) for conversation in conversations]
        wholes = (WholeConversation.of(store, number, figures=not no_figures) for number in numbers)
        if as_json:
            output.export_json(wholes, target, many=everything or len(numbers) > 1, force=force)
        elif len(numbers) == 1 and not everything and (target == "-" or not Path(target).is_dir()):
            output.export_markdown(next(wholes), target, force=force)
        elif target == "-":
            raise click.UsageError("Several conversations in Markdown need a folder: add --output DIR.")
        else:
            output.export_folder(zip(numbers, wholes, strict=True), Path(target), force=force)


@history.command("import")
@click.argument("files", metavar="FILE|-...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each conversation.")
def import_(files: Sequence[str], as_json: bool) -> None:
    """Add conversations from files.

    Reads what `export` wrote, and OpenAI-style JSON: an object with "messages", a list of messages, a list
    of such conversations, or one a line. A file is imported whole or, with an error, not at all. Of another
    history file, also a damaged one, everything is imported that can be read.
    """
    with _history(writing=True) as store:
        for file in files:
            output.imported(file, _import(store, file), as_json)


@history.command()
@click.argument("conversations", metavar="ID...", nargs=-1, required=True)
@click.option("--undo", is_flag=True, help="Bring them back.")
@click.option("--forever", is_flag=True, help="Delete for good, not to be brought back.")
@click.option("--yes", is_flag=True, help="Do not ask (--forever asks).")
def delete(conversations: Sequence[str], undo: bool, forever: bool, yes: bool) -> None:
    """Delete conversations; for 30 days --undo brings them back."""
    if undo and forever:
        raise click.UsageError("--undo and --forever exclude each other.")
    with _history(writing=True) as store:
        numbers = [_number(store, conversation) for conversation in conversations]
        if forever and not yes:
            what = "conversation " + ", ".join(map(str, numbers))
            click.confirm(f"Delete {what} for good?", abort=True, err=True)
        for number in numbers:
            if undo:
                store.restore(number)
            elif forever:
                store.purge(number)
            else:
                store.delete(number)
            if not undo:
                remove_saved(number)
    listed = " ".join(map(str, numbers))
    if undo:
        click.echo(f"Brought back: {listed}.", err=True)
    elif not forever:
        click.echo(f"Deleted. `dsv4chat history delete --undo {listed}` brings back.", err=True)


@contextmanager
def _history(*, writing: bool = False) -> Iterator[Repository]:
    """The history, its notice on standard error. ClickException if it cannot be written but must be."""
    try:
        folder = data_folder()
    except OSError as error:
        raise click.ClickException(
            f"There is no folder for the history ({error.strerror}); set DSV4CHAT_HOME to one you can use."
        ) from None
    opened = open_history(folder)
    try:
        if writing and not opened.persistent:
            raise click.ClickException(f"{opened.notice} So nothing was changed.")
        if opened.notice:
            click.echo(opened.notice, err=True)
        yield opened.repository
    finally:
        opened.repository.close()


def _number(store: Repository, name: str) -> int:
    """The number of an existing conversation. Raises StoreError, UsageError."""
    if name == "last":
        latest = store.summaries(1)
        if not latest:
            raise StoreError("The history is empty.")
        return latest[0].id
    if not name.isascii() or not name.isdigit() or len(name) > 18:
        raise click.UsageError(
            f"{name!r} is no number of a conversation; `dsv4chat history list` shows them."
        )
    return store.conversation(int(name)).id


def _import(store: Repository, file: str) -> list[tuple[int, str]]:
    """Number and title of each imported conversation."""
    if file != "-" and _is_database(Path(file)):
        found, lost = salvage(Path(file))
        if lost:
            click.echo(f"{lost} messages of {file} cannot be read.", err=True)
        wholes = [WholeConversation(talk.record, talk.messages, talk.figures) for talk in found]
        return [(whole.add_to(store), whole.record.title) for whole in wholes]
    raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    try:
        wholes = read_conversations(raw, time.time())
    except ExchangeError as error:
        name = "standard input" if file == "-" else file
        raise ExchangeError(f"{name} was not imported. {error}") from None
    return [(whole.add_to(store), whole.record.title) for whole in wholes]


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        # A history whose first page is overwritten is told by its name.
        return file.read(len(HEADER)) == HEADER or path.suffix == ".db"
