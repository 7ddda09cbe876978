"""The full-text index `message_text`: what was said and what was thought, all branches.

Found messages come newest first: that order the index gives away for any query, however many messages match
it, while the order of relevance would have to look at all of them first.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from dsv4chat.store import rows
from dsv4chat.store.errors import StoreIndexDamaged
from dsv4chat.store.records import Found
from dsv4chat.store.schema import MESSAGE_TEXT
from dsv4chat.store.transactions import Transactions
from dsv4chat.store.words import pattern, plain, query, segment

_FOUND = """
SELECT message.id, message.conversation_id, message.role, message.created, message.content,
    message.reasoning, conversation.title
FROM message_text JOIN message ON message.id = message_text.rowid
JOIN conversation ON conversation.id = message.conversation_id
WHERE message_text MATCH ? AND message_text.rowid < ? AND message.deleted IS NULL
    AND conversation.deleted IS NULL{also}
ORDER BY message_text.rowid DESC LIMIT ?
"""
_ANYWHERE = _FOUND.format(also="")
_IN_ONE = _FOUND.format(also=" AND message.conversation_id = ?")
_AROUND = 60  # characters of an excerpt on either side of what was found
_FOLDED = 20_000  # characters of a text in which words are looked for without their accents


class Searches(Transactions):
    """Full-text search."""

    def search(
        self, asked: str, limit: int = 50, *, before: int | None = None, conversation: int | None = None
    ) -> list[Found]:
        """Messages with all words and "phrases" of `asked`, newest first; [] if there is no word in it.

        The last word may be a beginning. before: the number of a message; only older ones, for the next
        page. conversation: only in this one.
        """
        asked = rows.storable(asked)
        match = query(asked)
        if match is None:
            return []
        older = 2**62 if before is None else before
        try:
            found = self._rows(match, older, conversation, limit)
        except StoreIndexDamaged:
            self.rebuild_index()
            found = self._rows(match, older, conversation, limit)
        shape = pattern(asked)
        return [_found(row, shape) for row in found]

    def rebuild_index(self) -> None:
        """Make the full-text index anew from the messages; for a large history that takes a minute.

        A table of FTS5 that is damaged can be neither dropped nor renamed, so its entries are taken out of
        the schema; VACUUM gives its pages back.
        """
        with self.transaction() as connection:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("DELETE FROM sqlite_schema WHERE tbl_name GLOB 'message_text*'")
            connection.execute("PRAGMA writable_schema = RESET")
            connection.execute(MESSAGE_TEXT)
            for row in connection.execute(
                "SELECT id, content, reasoning FROM message WHERE state <> 'writing'"
            ):
                index(connection, row["id"], row["content"], row["reasoning"])
        with suppress(sqlite3.Error):
            self.connection.execute("VACUUM")

    def _rows(self, match: str, older: int, conversation: int | None, limit: int) -> list[sqlite3.Row]:
        with self.reading() as connection, _blaming_the_index():
            if conversation is None:
                return connection.execute(_ANYWHERE, (match, older, limit)).fetchall()
            return connection.execute(_IN_ONE, (match, older, conversation, limit)).fetchall()


def index(connection: sqlite3.Connection, message: int, content: str, reasoning: str | None) -> None:
    """Make a message findable by its present text. Raises StoreIndexDamaged."""
    forget_message(connection, message)
    with _blaming_the_index():
        connection.execute(
            "INSERT INTO message_text (rowid, content, reasoning) VALUES (?, ?, ?)",
            (message, segment(content), segment(reasoning or "")),
        )


def forget_message(connection: sqlite3.Connection, message: int) -> None:
    """Take a message out of the index. Raises StoreIndexDamaged."""
    with _blaming_the_index():
        connection.execute("DELETE FROM message_text WHERE rowid = ?", (message,))


def forget(connection: sqlite3.Connection, conversation: int) -> None:
    """Take a conversation's messages out of the index. Raises StoreIndexDamaged."""
    with _blaming_the_index():
        connection.execute(
            "DELETE FROM message_text WHERE rowid IN (SELECT id FROM message WHERE conversation_id = ?)",
            (conversation,),
        )


@contextmanager
def _blaming_the_index() -> Iterator[None]:
    """What SQLite finds malformed here is the index, which can be made anew."""
    try:
        yield
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        raise StoreIndexDamaged(f"The index of the search is damaged ({error}).") from error


def _found(row: sqlite3.Row, shape: re.Pattern[str] | None) -> Found:
    texts = {"content": row["content"], "reasoning": row["reasoning"] or ""}
    place = next(
        (
            (where, start)
            for where, text in texts.items()
            if shape is not None and (start := _first(shape, text)) is not None
        ),
        ("content" if texts["content"] else "reasoning", 0),
    )
    excerpt = _excerpt(texts[place[0]], place[1])
    marks = () if shape is None else tuple(match.span() for match in shape.finditer(plain(excerpt)))
    return Found(
        conversation=row["conversation_id"],
        message=row["id"],
        title=row["title"],
        role=row["role"],
        created=row["created"],
        excerpt=excerpt,
        marks=marks,
        where=place[0],
    )


def _first(shape: re.Pattern[str], text: str) -> int | None:
    match = shape.search(text) or shape.search(plain(text[:_FOLDED]))
    return None if match is None else match.start()


def _excerpt(text: str, place: int) -> str:
    start, end = max(0, place - _AROUND), min(len(text), place + 2 * _AROUND)
    cut = " ".join(text[start:end].split())
    return ("…" if start else "") + cut + ("…" if end < len(text) else "")
