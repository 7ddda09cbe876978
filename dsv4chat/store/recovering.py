"""What can be read of a damaged history, put into a new one under the same numbers.

Which table a row belongs to is told by its shape. Where rows are missing, those that refer to them are made
to agree with what is there: a message follows the last one before it, an answer whose tokens have a gap keeps
none of them.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from dsv4chat.store import searching
from dsv4chat.store.errors import StoreDamaged
from dsv4chat.store.pages import Pages, Row, Value
from dsv4chat.store.schema import APPLICATION_ID

_TABLES = ("conversation", "message", "generation", "approval", "draft", "left_open")
_WITHOUT_ROWID = ("tool_call", "token_block")
_TYPES: dict[str, tuple[type, ...]] = {
    "INTEGER": (int,),
    "REAL": (int, float),
    "TEXT": (str,),
    "BLOB": (bytes,),
}
_OF_MESSAGES = ("generation", "tool_call", "token_block")

_REPAIRS = (
    """
    UPDATE message SET parent_id = (
        SELECT max(before.id) FROM message AS before
        WHERE before.conversation_id = message.conversation_id AND before.id < message.id
            AND before.deleted IS NULL
    )
    WHERE parent_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM message AS parent WHERE parent.id = message.parent_id AND parent.id < message.id
            AND parent.conversation_id = message.conversation_id
    )
    """,
    """
    INSERT INTO conversation (id, created, updated)
        SELECT conversation_id, min(created), max(updated) FROM message
        WHERE conversation_id NOT IN (SELECT id FROM conversation) GROUP BY conversation_id
    """,
    """
    UPDATE conversation SET active_leaf = (
        SELECT max(id) FROM message WHERE conversation_id = conversation.id AND deleted IS NULL
    )
    WHERE NOT EXISTS (
        SELECT 1 FROM message WHERE id = active_leaf AND conversation_id = conversation.id AND deleted IS NULL
    )
    """,
    "UPDATE conversation SET start = NULL WHERE start NOT IN (SELECT id FROM message)",
    "DELETE FROM approval WHERE conversation_id NOT IN (SELECT id FROM conversation)",
    "DELETE FROM draft WHERE conversation_id NOT IN (SELECT id FROM conversation)",
    *(f"DELETE FROM {table} WHERE message_id NOT IN (SELECT id FROM message)" for table in _OF_MESSAGES),
    """
    DELETE FROM token_block WHERE message_id NOT IN (
        SELECT message_id FROM token_block JOIN generation USING (message_id) GROUP BY message_id
        HAVING max(start + count) = sum(count) AND coalesce(tokens, 0) <= sum(count)
    )
    """,
    *(
        f"UPDATE {table} SET {column} = '{empty}'"
        f" WHERE CASE WHEN json_valid({column}) THEN json_type({column}) END IS NOT '{kind}'"
        for table, column, kind, empty in (
            ("conversation", "sampling", "object", "{}"),
            ("conversation", "tools", "array", "[]"),
            ("generation", "sampling", "object", "{}"),
        )
    ),
)


@dataclass(frozen=True)
class Recovered:
    """How much came back, without what was deleted; lost: how many messages are known to be missing."""

    conversations: int
    messages: int
    lost: int

    @property
    def sentence(self) -> str:
        """For a person."""
        if not self.messages:
            return "Nothing could be brought back, and a new history was started."
        lost = f"; {_count(self.lost, 'message')} could not be read" if self.lost else ""
        came = "was" if self.messages == 1 else "were"
        where = _count(self.conversations, "conversation")
        return f"{_count(self.messages, 'message')} in {where} {came} brought back{lost}."


def recover(path: Path, connection: sqlite3.Connection) -> Recovered:
    """Fill the empty history behind `connection` from the damaged file; all of it or nothing.

    Raises StoreDamaged if the file is another program's, and sqlite3.Error and OSError.
    """
    log = path.with_name(f"{path.name}-wal")
    with path.open("rb") as file:
        pages = Pages(file, log.read_bytes() if log.exists() else b"")
        if pages.owner not in (None, APPLICATION_ID):
            raise StoreDamaged(f"{path} is a database of another program.")
        connection.execute("PRAGMA foreign_keys = OFF")
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            lost = _missing(connection, _fill(connection, pages))
            for repair in _REPAIRS:
                connection.execute(repair)
            for row in connection.execute("SELECT id, content, reasoning FROM message"):
                searching.index(connection, row[0], row[1], row[2])
        connection.execute("PRAGMA foreign_keys = ON")
    conversations, messages = connection.execute(
        "SELECT count(DISTINCT conversation_id), count(*) FROM message WHERE deleted IS NULL"
        " AND conversation_id IN (SELECT id FROM conversation WHERE deleted IS NULL)"
    ).fetchone()
    return Recovered(conversations, messages, lost)


def _fill(connection: sqlite3.Connection, pages: Pages) -> set[int]:
    """Insert the rows; returns the numbers of the messages that the full-text index has."""
    numbered = [_Table(connection, name) for name in _TABLES]
    others = [_Table(connection, name) for name in _WITHOUT_ROWID]
    indexed = set()
    for row in pages.rows():
        if row.number is not None and _is_indexed_text(row.values):
            indexed.add(row.number)
        else:
            any(table.take(row) for table in (others if row.number is None else numbered))
    return indexed


def _is_indexed_text(values: Sequence[Value]) -> bool:
    """Whether these are the columns of `message_text_content`."""
    return len(values) == 3 and values[0] is None and all(isinstance(text, str) for text in values[1:])


def _missing(connection: sqlite3.Connection, indexed: set[int]) -> int:
    known = connection.execute(
        "SELECT parent_id FROM message WHERE parent_id IS NOT NULL"
        " UNION SELECT active_leaf FROM conversation WHERE active_leaf IS NOT NULL"
        + "".join(f" UNION SELECT message_id FROM {table}" for table in _OF_MESSAGES)
    )
    there = {row[0] for row in connection.execute("SELECT id FROM message")}
    return len((indexed | {row[0] for row in known}) - there)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class _Table:
    """A table of the new history, which takes the rows that look like its own."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._connection = connection
        self._name = name
        columns = connection.execute(f"PRAGMA table_info({name})").fetchall()
        self._columns = [column[1] for column in columns]
        self._types = [_TYPES[column[2]] for column in columns]
        self._required = [bool(column[3]) for column in columns]
        keys = [place for place, column in enumerate(columns) if column[5]]
        self._number = keys[0] if len(keys) == 1 else None

    def take(self, row: Row) -> bool:
        """Insert the row; False if it is none of this table. Of two of one number the later one counts."""
        values = list(row.values)
        if self._number is not None:
            if len(values) <= self._number or values[self._number] is not None:
                return False
            values[self._number] = row.number
        if not self._fits(values):
            return False
        columns = self._columns[: len(values)]
        names, new = ", ".join(columns), ", ".join(f"excluded.{name}" for name in columns)
        twice = "DO NOTHING"
        if self._number is not None and "updated" in columns:
            key = columns[self._number]
            twice = f"({key}) DO UPDATE SET ({names}) = ({new}) WHERE excluded.updated > {self._name}.updated"
        try:
            self._connection.execute(
                f"INSERT INTO {self._name} ({names}) VALUES ({', '.join('?' * len(values))})"
                f" ON CONFLICT {twice}",
                values,
            )
        except sqlite3.IntegrityError:
            return False
        return True

    def _fits(self, values: Sequence[Value]) -> bool:
        """Columns that were added to a table later are missing in older rows."""
        return len(values) <= len(self._columns) and all(
            (isinstance(value, kinds) if value is not None else not required)
            for value, kinds, required in zip_longest(values, self._types, self._required)
        )
