"""The tree of messages: putting one in, walking up and down, and answers that are being written."""

import sqlite3
from collections.abc import Sequence

from dsv4chat.store.errors import StoreDamaged

_PATH = """
WITH RECURSIVE path (id, parent_id, depth) AS (
    SELECT id, parent_id, 0 FROM message WHERE id = ?
    UNION ALL
    SELECT message.id, message.parent_id, depth + 1 FROM message JOIN path ON message.id = path.parent_id
)
SELECT id FROM path ORDER BY depth DESC
"""
_SIBLINGS = """
SELECT other.id FROM message JOIN message AS other
ON other.conversation_id = message.conversation_id AND other.parent_id IS message.parent_id
WHERE message.id = ? ORDER BY other.id
"""
_NEWEST_BELOW = """
WITH RECURSIVE below (id) AS (
    SELECT ? UNION ALL SELECT message.id FROM message JOIN below ON message.parent_id = below.id
)
SELECT max(id) FROM below
"""


def insert(
    connection: sqlite3.Connection,
    now: float,
    conversation: int,
    parent: int | None,
    role: str,
    content: str,
    **columns: object,
) -> int:
    """Add a message under `parent`, make it the active leaf of its conversation, return its number."""
    values = {
        "conversation_id": conversation,
        "parent_id": parent,
        "role": role,
        "content": content,
        "created": now,
        "updated": now,
        **columns,
    }
    marks = ", ".join("?" * len(values))
    cursor = connection.execute(
        f"INSERT INTO message ({', '.join(values)}) VALUES ({marks})", tuple(values.values())
    )
    number = row_id(cursor)
    connection.execute(
        "UPDATE conversation SET active_leaf = ?, updated = ? WHERE id = ?", (number, now, conversation)
    )
    return number


def row_id(cursor: sqlite3.Cursor) -> int:
    """The number of the row that was just inserted."""
    if cursor.lastrowid is None:
        raise StoreDamaged("The history did not accept a new entry.")
    return cursor.lastrowid


def path(connection: sqlite3.Connection, leaf: int) -> list[int]:
    """The messages from the first one down to `leaf`."""
    return [row[0] for row in connection.execute(_PATH, (leaf,))]


def siblings(connection: sqlite3.Connection, message: int) -> list[int]:
    """A message and the others under the same parent, oldest first."""
    return [row[0] for row in connection.execute(_SIBLINGS, (message,))]


def newest_leaf(connection: sqlite3.Connection, message: int) -> int:
    """The newest message among `message` and all below it: always a leaf, as children are newer."""
    return int(connection.execute(_NEWEST_BELOW, (message,)).fetchone()[0])


def update_answer(
    connection: sqlite3.Connection, now: float, answer: int, content: str, reasoning: str | None
) -> None:
    """Replace the text of an answer."""
    connection.execute(
        "UPDATE message SET content = ?, reasoning = ?, updated = ? WHERE id = ?",
        (content, reasoning, now, answer),
    )


def writers(connection: sqlite3.Connection) -> list[str | None]:
    """Who says to be writing an answer."""
    return [
        row[0] for row in connection.execute("SELECT DISTINCT writer FROM message WHERE state = 'writing'")
    ]


def interrupt(connection: sqlite3.Connection, writers: Sequence[str | None]) -> list[sqlite3.Row]:
    """Mark what `writers` left unfinished; returns id, content and reasoning of those answers."""
    left: list[sqlite3.Row] = []
    for writer in writers:
        left += connection.execute(
            "SELECT id, content, reasoning FROM message WHERE state = 'writing' AND writer IS ?", (writer,)
        ).fetchall()
        connection.execute(
            "UPDATE message SET state = 'interrupted', writer = NULL WHERE state = 'writing' AND writer IS ?",
            (writer,),
        )
    return left
