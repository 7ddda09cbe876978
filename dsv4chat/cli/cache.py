"""`dsv4chat cache`: the saved caches of conversations on this machine. No engine and no model is needed."""

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from dsv4chat.paths import saved_caches
from dsv4chat.runtime.protocol_cache import SUFFIX, SavedCacheError, read_head
from dsv4chat.saved_caches import saved_files
from dsv4chat.visible import visible

_EPILOG = """\b
Exit codes:
  0  done
  1  it could not be done; the reason is on standard error
  2  wrong usage
"""


@dataclass
class SavedConversation:
    """What is saved of one conversation with one model.

    tokens: of its longest version; versions: that end differently; seconds: since it was last used.
    conversation: None for files that cannot be read.
    """

    conversation: str | None
    model: str
    tokens: int
    versions: int
    bytes: int
    seconds: float


@click.group(epilog=_EPILOG)
def cache() -> None:
    """List and clear saved caches. They only save time: whatever is missing is computed again."""


@cache.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def list_(as_json: bool) -> None:
    """What is saved, the last used first, with its size on disk."""
    found = sorted(_conversations(_folder()), key=lambda entry: entry.seconds)
    if as_json:
        for entry in found:
            click.echo(json.dumps(asdict(entry), ensure_ascii=False))
        return
    if not found:
        click.echo("No caches are saved.")
        return
    click.echo(f"{'conversation':16}{'model':20}{'tokens':>9}{'versions':>10}{'MB':>9}  last used")
    for entry in found:
        name = "(unreadable)" if entry.conversation is None else visible(entry.conversation)
        click.echo(
            f"{name:16}{visible(entry.model):20}{entry.tokens:9,}{entry.versions:10}"
            f"{entry.bytes / 1e6:9.1f}  {_ago(entry.seconds)}"
        )
    click.echo(f"{sum(entry.bytes for entry in found) / 1e6:.1f} MB in {_folder()}")


@cache.command()
@click.argument("conversations", nargs=-1, metavar="[CONVERSATION]...")
def clear(conversations: tuple[str, ...]) -> None:
    """Delete the saved caches of the named conversations, or all of them."""
    freed = count = 0
    for path, conversation in saved_files(_folder()):
        if conversations and conversation not in conversations:
            continue
        try:
            size = path.stat().st_size
            path.unlink()
        except FileNotFoundError:
            continue
        except OSError as error:
            click.echo(f"dsv4chat cache: {path} cannot be deleted: {error.strerror}.", err=True)
            sys.exit(1)
        freed, count = freed + size, count + 1
    _remove_empty(_folder())
    click.echo(f"Deleted {count} file{'' if count == 1 else 's'}, {freed / 1e6:.1f} MB.")


def _folder() -> Path:
    try:
        return saved_caches()
    except OSError as error:
        click.echo(f"dsv4chat cache: there is no folder for caches: {error.strerror}.", err=True)
        sys.exit(1)


def _conversations(folder: Path) -> list[SavedConversation]:
    """What the files of a folder add up to."""
    groups: dict[tuple[str | None, str], SavedConversation] = {}
    continued: set[str] = set()
    names: list[tuple[SavedConversation, str]] = []
    unreadable: tuple[str | None, str] = (None, "")
    now = time.time()
    for path in sorted(folder.glob(f"*/*/*{SUFFIX}")):
        try:
            facts = path.stat()
            head = read_head(path)
        except OSError:
            continue
        except SavedCacheError:
            key, tokens = unreadable, 0
        else:
            key, tokens = (head.conversation, head.model), head.end
            continued.add(head.parent)
        age = max(0.0, now - facts.st_mtime)
        entry = groups.setdefault(key, SavedConversation(*key, 0, 0, 0, age))
        entry.tokens = max(entry.tokens, tokens)
        entry.bytes += facts.st_size
        entry.seconds = min(entry.seconds, age)
        names.append((entry, path.stem))
    for entry, name in names:
        entry.versions += name not in continued
    return list(groups.values())


def _remove_empty(folder: Path) -> None:
    """Folders that nothing is left in."""
    for path in [*folder.glob("*/*"), *folder.glob("*")]:
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def _ago(seconds: float) -> str:
    for size, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {name}{'' if count == 1 else 's'} ago"
    return "just now"
