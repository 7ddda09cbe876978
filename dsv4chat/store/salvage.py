"""Reading the conversations of a history file that is not the one in use: a copy, an older or damaged one."""

import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from dsv4chat.store import generations, rows
from dsv4chat.store.errors import StoreDamaged, StoreError, StoreUnwritable
from dsv4chat.store.figures import TokenFigures
from dsv4chat.store.opening import open_in_memory, open_read_only
from dsv4chat.store.records import ConversationRecord, MessageRecord
from dsv4chat.store.recovering import recover
from dsv4chat.store.schema import APPLICATION_ID


@dataclass
class Salvaged:
    """One conversation: messages of all branches, each after its parent."""

    record: ConversationRecord
    messages: list[MessageRecord] = field(default_factory=list)
    figures: dict[int, TokenFigures] = field(default_factory=dict)


def salvage(path: Path) -> tuple[list[Salvaged], int]:
    """The conversations that can be read and have messages, and how many messages could not be read.

    What was deleted is left out. Raises StoreError if the file is no history at all or cannot be opened.
    """
    whole = _of_sound_file(path)
    if whole is not None:
        return whole, 0
    try:
        with closing(open_in_memory()) as history:
            recovered = recover(path, history.connection)
            if not recovered.messages:
                raise StoreDamaged(f"{path} is too damaged: nothing in it can be read.")
            return _conversations(history.connection), recovered.lost
    except OSError as error:
        raise StoreUnwritable(f"{path} cannot be opened ({error.strerror or error}).") from error


def _of_sound_file(path: Path) -> list[Salvaged] | None:
    """The conversations of a file in which SQLite finds nothing wrong, else None."""
    with suppress(sqlite3.DatabaseError, StoreUnwritable), closing(open_read_only(path)) as connection:
        if connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok":
            if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
                raise StoreDamaged(f"{path} is a database of another program.")
            return _conversations(connection)
    return None


def _conversations(connection: sqlite3.Connection) -> list[Salvaged]:
    connection.row_factory = sqlite3.Row
    columns = {row["name"] for row in connection.execute("PRAGMA table_info(message)")}
    living = " AND deleted IS NULL" if "deleted" in columns else ""  # the first format deleted for good
    found = []
    for row in connection.execute("SELECT * FROM conversation WHERE deleted IS NULL").fetchall():
        ids = connection.execute(
            f"SELECT id FROM message WHERE conversation_id = ?{living} ORDER BY id", (row["id"],)
        )
        talk = Salvaged(rows.conversation(row), rows.messages(connection, [one["id"] for one in ids]))
        for message in talk.messages:
            if message.ids:
                with suppress(StoreError, ValueError):
                    talk.figures[message.id] = generations.figures(connection, message.id)
        if talk.messages:
            found.append(talk)
    return found
