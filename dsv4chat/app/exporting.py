"""A conversation to a file beside the person: Markdown or JSON, and never over a file that is there.

The ending of the name says which. A name with another ending is refused rather than filled with what its
reader does not expect; one without gets Markdown's.
"""

import re
from pathlib import Path

from dsv4chat.exchange import ExchangeError, WholeConversation, whole_file, write_json, write_markdown
from dsv4chat.paths import expanded
from dsv4chat.store import Repository

_ENDINGS = (".md", ".json")
_UNFIT = re.compile(r"[^\w.-]+")


def export_conversation(history: Repository, conversation: int, target: str) -> Path:
    """Write it and return where. `target`: a file, a folder, or "" for a name made of the title here.

    Raises StoreError, ExchangeError for an ending that is none of ours, and OSError (FileExistsError for a
    named file that is there).
    """
    path = expanded(target) if target else Path()
    named = target != "" and not path.is_dir()
    if named and path.suffix.lower() not in ("", *_ENDINGS):
        raise ExchangeError(f"{path.name} ends in neither .md (Markdown) nor .json; choose one of the two.")
    whole = WholeConversation.of(history, conversation)
    if named and not path.suffix:
        path = path.with_name(f"{path.name}.md")
    elif not named:
        path = _free(path / f"{_UNFIT.sub('-', whole.record.title).strip('-.')[:60] or 'conversation'}.md")
    as_json = path.suffix.lower() == ".json"
    content = b"".join(write_json([whole], many=False)) if as_json else write_markdown(whole)
    with whole_file(path) as file:
        file.write(content)
    return path.absolute()


def _free(path: Path) -> Path:
    """`path`, or the first of "name-2", "name-3" ... that is not there."""
    number = 1
    free = path
    while free.exists():
        number += 1
        free = path.with_stem(f"{path.stem}-{number}")
    return free
