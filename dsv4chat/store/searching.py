"""The full-text index `message_text`: what was said and what was thought, all branches."""

import re
import sqlite3

from dsv4chat.store.records import Found
from dsv4chat.store.search import query, segment

_AROUND = 60  # characters of an excerpt on either side of what was found


def index(connection: sqlite3.Connection, message: int, content: str, reasoning: str | None) -> None:
    """Make a message findable by its present text."""
    connection.execute("DELETE FROM message_text WHERE rowid = ?", (message,))
    connection.execute(
        "INSERT INTO message_text (rowid, content, reasoning) VALUES (?, ?, ?)",
        (message, segment(content), segment(reasoning or "")),
    )


def forget(connection: sqlite3.Connection, conversation: int) -> None:
    """Take a conversation's messages out of the index."""
    connection.execute(
        "DELETE FROM message_text WHERE rowid IN (SELECT id FROM message WHERE conversation_id = ?)",
        (conversation,),
    )


def search(connection: sqlite3.Connection, words: str, limit: int) -> list[Found]:
    """Messages with all `words`, best first; [] if `words` has no word."""
    asked = query(words)
    if asked is None:
        return []
    found = connection.execute(
        "SELECT message.id, message.conversation_id, message.role, message.content, message.reasoning,"
        " conversation.title FROM message_text JOIN message ON message.id = message_text.rowid"
        " JOIN conversation ON conversation.id = message.conversation_id"
        " WHERE message_text MATCH ? AND conversation.deleted IS NULL ORDER BY message_text.rank LIMIT ?",
        (asked, limit),
    ).fetchall()
    first = words.split()[0]
    return [Found(row[1], row[0], row[5], row[2], _excerpt((row[3], row[4] or ""), first)) for row in found]


def _excerpt(texts: tuple[str, ...], word: str) -> str:
    pattern = re.compile(re.escape(word), re.IGNORECASE)
    for text in texts:
        match = pattern.search(text)
        if match:
            start = max(0, match.start() - _AROUND)
            end = min(len(text), match.end() + _AROUND)
            cut = " ".join(text[start:end].split())
            return ("…" if start else "") + cut + ("…" if end < len(text) else "")
    return " ".join((texts[0] or texts[1])[: 2 * _AROUND].split())
