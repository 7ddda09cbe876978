"""The tree of messages: putting one in, walking up and down, hiding a part of it.

A message is hidden only together with all below it, so everything above a living message is alive.
Siblings and branches do not count hidden messages.
"""

import sqlite3
from collections.abc import Sequence

from dsv4chat.store.errors import StoreDamaged, StoreMissing

_UP = """
WITH RECURSIVE path (id, parent_id, depth) AS (
    SELECT id, parent_id, 0 FROM message WHERE id = ?
    UNION ALL
    SELECT message.id, message.parent_id, depth + 1 FROM message JOIN path ON message.id = path.parent_id
    LIMIT ?
)
SELECT id FROM path ORDER BY depth DESC
"""
_SIBLINGS = """
SELECT message.id, other.id FROM message JOIN message AS other INDEXED BY message_tree
ON other.conversation_id = message.conversation_id AND other.parent_id IS message.parent_id
WHERE message.id IN ({marks}) AND other.deleted IS NULL ORDER BY message.id, other.id
"""
_BELOW = """
WITH RECURSIVE below (id) AS (
    SELECT id FROM message WHERE id = ? AND deleted IS NULL
    UNION ALL
    SELECT message.id FROM message JOIN below ON message.parent_id = below.id WHERE message.deleted IS NULL
)
"""
# The messages below that nothing follows; among them the one that was shown last.
_LAST_SHOWN_LEAF = (
    _BELOW
    + """
SELECT id FROM message WHERE id IN below AND NOT EXISTS (
    SELECT 1 FROM message AS child WHERE child.parent_id = message.id AND child.deleted IS NULL
) ORDER BY coalesce(shown, created) DESC, id DESC LIMIT 1
"""
)
_EVERYTHING = -1  # LIMIT
_AT_ONCE = 500  # ids in one query


def insert(
    connection: sqlite3.Connection,
    now: float,
    conversation: int,
    parent: int | None,
    role: str,
    content: str,
    **columns: object,
) -> int:
    """Add a message under `parent`, make it the active leaf of its conversation, return its number.

    What was hidden above it comes back: another program may have deleted what this one writes to.
    """
    reveal(connection, conversation, parent)
    values = {
        "conversation_id": conversation,
        "parent_id": parent,
        "role": role,
        "content": content,
        "created": now,
        "updated": now,
        "shown": now,
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


def reveal(connection: sqlite3.Connection, conversation: int, parent: int | None) -> None:
    """A conversation, and a message of it with all above it, is deleted no more. Raises StoreMissing."""
    found = connection.execute("SELECT deleted FROM conversation WHERE id = ?", (conversation,)).fetchone()
    if found is None:
        raise StoreMissing("This conversation is not in the history any more.")
    if found["deleted"] is not None:
        connection.execute("UPDATE conversation SET deleted = NULL WHERE id = ?", (conversation,))
    if parent is None:
        return
    above = connection.execute(
        "SELECT deleted FROM message WHERE id = ? AND conversation_id = ?", (parent, conversation)
    ).fetchone()
    if above is None:
        raise StoreMissing("The message this one follows is not in the history any more.")
    if above["deleted"] is not None:
        connection.executemany(
            "UPDATE message SET deleted = NULL WHERE id = ?",
            [(number,) for number in path(connection, parent)],
        )


def row_id(cursor: sqlite3.Cursor) -> int:
    """The number of the row that was just inserted."""
    if cursor.lastrowid is None:
        raise StoreDamaged("The history did not accept a new entry.")
    return cursor.lastrowid


def path(connection: sqlite3.Connection, leaf: int, last: int | None = None) -> list[int]:
    """The messages from the first one (or the `last` ones only) down to `leaf`."""
    return [row[0] for row in connection.execute(_UP, (leaf, _EVERYTHING if last is None else last))]


def siblings(connection: sqlite3.Connection, message: int) -> list[int]:
    """A message and the others under the same parent, oldest first."""
    return siblings_of(connection, [message]).get(message, [])


def siblings_of(connection: sqlite3.Connection, messages: Sequence[int]) -> dict[int, list[int]]:
    """`siblings` of each of many messages."""
    found: dict[int, list[int]] = {}
    for start in range(0, len(messages), _AT_ONCE):
        part = tuple(messages[start : start + _AT_ONCE])
        for message, other in connection.execute(_SIBLINGS.format(marks=", ".join("?" * len(part))), part):
            found.setdefault(message, []).append(other)
    return found


def last_shown_leaf(connection: sqlite3.Connection, message: int) -> int:
    """The end of a branch under `message`: where one was last."""
    row = connection.execute(_LAST_SHOWN_LEAF, (message,)).fetchone()
    if row is None:
        raise StoreMissing("This message is not in the history any more.")
    return int(row[0])


def activate(connection: sqlite3.Connection, now: float, conversation: int, leaf: int | None) -> None:
    """Make `leaf` the end of the branch that is shown."""
    connection.execute("UPDATE conversation SET active_leaf = ? WHERE id = ?", (leaf, conversation))
    connection.execute("UPDATE message SET shown = ? WHERE id = ?", (now, leaf))


def below(connection: sqlite3.Connection, message: int) -> list[int]:
    """`message` and all that follows it in any branch."""
    return [row[0] for row in connection.execute(_BELOW + "SELECT id FROM below", (message,))]


def hide(connection: sqlite3.Connection, stamp: float, messages: Sequence[int]) -> None:
    """Hide `messages` under the mark `stamp`."""
    connection.executemany("UPDATE message SET deleted = ? WHERE id = ?", [(stamp, n) for n in messages])


def unhide(connection: sqlite3.Connection, stamp: float, conversation: int) -> None:
    """Bring back what was hidden under `stamp`."""
    connection.execute(
        "UPDATE message SET deleted = NULL WHERE deleted = ? AND conversation_id = ?", (stamp, conversation)
    )


def leaf_beside(connection: sqlite3.Connection, message: int) -> int | None:
    """What to show when `message` is taken away: the branch before it, else after it, else what is above."""
    others = siblings(connection, message)
    index = others.index(message) if message in others else 0
    if len(others) > 1:
        return last_shown_leaf(connection, others[index - 1] if index else others[1])
    row = connection.execute("SELECT parent_id FROM message WHERE id = ?", (message,)).fetchone()
    return None if row is None or row[0] is None else int(row[0])
