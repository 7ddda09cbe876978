"""The files of saved caches as anything but an engine sees them: whose they are, and removing them."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from dsv4chat.paths import saved_caches
from dsv4chat.runtime.protocol_cache import SUFFIX, SavedCacheError, read_head


def saved_files(folder: Path) -> Iterator[tuple[Path, str | None]]:
    """Every saved file, and the conversation it belongs to; None if that cannot be read."""
    for path in sorted(folder.glob(f"*/*/*{SUFFIX}")):
        try:
            yield path, read_head(path).conversation
        except SavedCacheError:
            yield path, None


def saved_conversations(folder: Path) -> dict[int, list[Path]]:
    """The saved files of all conversations of the history, by their numbers."""
    found: dict[int, list[Path]] = {}
    for path, owner in saved_files(folder):
        if owner is not None and owner.isdecimal():
            found.setdefault(int(owner), []).append(path)
    return found


def remove_saved(conversation: int) -> None:
    """Remove what is saved of a conversation that was deleted, as far as that can be done."""
    with contextlib.suppress(OSError):
        remove_files(saved_conversations(saved_caches()).get(conversation, []))


def remove_files(paths: Iterable[Path]) -> None:
    """Remove saved files, as far as that can be done."""
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
