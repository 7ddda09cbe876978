"""Reading what can be read of a history file that is not the one in use: set aside as damaged, or a copy.

Every row is asked for on its own, so that a broken page costs what is on it and nothing else.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from dsv4chat.store import generations, rows
from dsv4chat.store.errors import StoreDamaged, StoreError, StoreUnwritable
from dsv4chat.store.figures import TokenFigures
from dsv4chat.store.records import ConversationRecord, ConversationSettings, MessageRecord
from dsv4chat.store.schema import APPLICATION_ID

HEADER = b"SQLite format 3\0"
_SCANS = {
    "conversation": (
        "SELECT id FROM conversation NOT INDEXED ORDER BY id",
        "SELECT id FROM conversation NOT INDEXED ORDER BY id DESC",
        "SELECT conversation_id FROM message",
    ),
    "message": (
        "SELECT id FROM message NOT INDEXED ORDER BY id",
        "SELECT id FROM message NOT INDEXED ORDER BY id DESC",
        "SELECT id FROM message INDEXED BY message_parent ORDER BY parent_id",
        "SELECT id FROM message INDEXED BY message_parent ORDER BY parent_id DESC",
        "SELECT active_leaf FROM conversation WHERE active_leaf IS NOT NULL",
    ),
}


@dataclass
class Salvaged:
    """One conversation: messages of all branches, each after its parent."""

    record: ConversationRecord
    messages: list[MessageRecord] = field(default_factory=list)
    figures: dict[int, TokenFigures] = field(default_factory=dict)
    known: set[int] = field(default_factory=set)


def salvage(path: Path) -> tuple[list[Salvaged], int]:
    """The conversations that can be read and have messages, and how many messages could not be read.

    What was deleted is left out. Raises StoreError if the file is no history at all or cannot be opened.
    """
    with closing(open_read_only(path)) as connection:
        connection.row_factory = sqlite3.Row
        try:
            owner = connection.execute("PRAGMA application_id").fetchone()[0]
        except sqlite3.Error as error:
            raise StoreDamaged(f"{path} is too damaged to be read ({error}).") from error
        if owner != APPLICATION_ID:
            raise StoreDamaged(f"{path} is a database of another program.")
        return _conversations(connection)


def open_read_only(path: Path) -> sqlite3.Connection:
    """A connection that writes nothing, also where nothing can be written. Raises StoreUnwritable."""
    problem: Exception = FileNotFoundError(path)
    for way in ("mode=ro", "immutable=1"):
        try:
            connection = sqlite3.connect(f"{path.resolve().as_uri()}?{way}", uri=True)
            connection.execute("PRAGMA schema_version")
            return connection
        except sqlite3.Error as error:
            problem = error
    raise StoreUnwritable(f"{path} cannot be opened ({problem}).")


def _conversations(connection: sqlite3.Connection) -> tuple[list[Salvaged], int]:
    found: dict[int, Salvaged] = {}
    hidden: set[int] = set()
    for number in _ids(connection, "conversation"):
        with suppress(sqlite3.Error, ValueError, IndexError, TypeError):
            row = connection.execute("SELECT * FROM conversation WHERE id = ?", (number,)).fetchone()
            if row["deleted"] is None:
                found[number] = Salvaged(rows.conversation(row))
            else:
                hidden.add(number)
    lost = 0
    for number in _ids(connection, "message"):
        message = _message(connection, number)
        if message is None:
            lost += 1
        elif message is not _DELETED and message.conversation not in hidden:
            talk = found.setdefault(message.conversation, Salvaged(_unknown(message)))
            _add(connection, talk, message)
    return [talk for talk in found.values() if talk.messages], lost


def _ids(connection: sqlite3.Connection, table: str) -> Iterator[int]:
    """The numbers of all rows that may be there, ascending.

    A scan ends at the first broken page, so there are several from both ends; what they do not reach is
    guessed.
    """
    known: set[int] = set()
    for scan in _SCANS[table]:
        with suppress(sqlite3.Error):
            for row in connection.execute(scan):
                known.add(row[0])
            if scan is _SCANS[table][0]:
                return iter(sorted(known))
    return iter(range(1, max(known, default=0) + 1))


_DELETED = MessageRecord(0, 0, None, "user", "", 0.0)


def _message(connection: sqlite3.Connection, number: int) -> MessageRecord | None:
    """A message, `_DELETED` for one that is gone or hidden, None if it cannot be read."""
    try:
        row = connection.execute("SELECT * FROM message WHERE id = ?", (number,)).fetchone()
        if row is None or ("deleted" in row.keys() and row["deleted"] is not None):  # noqa: SIM118 - a Row
            return _DELETED
        return rows.messages(connection, [number])[0]
    except (sqlite3.Error, StoreError, ValueError, IndexError):
        return None


def _add(connection: sqlite3.Connection, talk: Salvaged, message: MessageRecord) -> None:
    """Add a message; what it followed may be lost, then it follows the last one that is there."""
    if message.parent is not None and message.parent not in talk.known:
        message = replace(message, parent=talk.messages[-1].id if talk.messages else None)
    talk.messages.append(message)
    talk.known.add(message.id)
    if message.ids:
        with suppress(sqlite3.Error, StoreError, ValueError):
            talk.figures[message.id] = generations.figures(connection, message.id)


def _unknown(message: MessageRecord) -> ConversationRecord:
    return ConversationRecord(
        message.conversation, "", "none", message.created, message.updated, None, ConversationSettings()
    )
