"""Conversations: making, listing, settings, titles, deleting with undo."""

import sqlite3

from dsv4chat.store import rows, searching, tree
from dsv4chat.store.errors import StoreMissing
from dsv4chat.store.records import ConversationRecord, ConversationSettings, ConversationSummary
from dsv4chat.store.transactions import Transactions

_SUMMARIES = """
SELECT id, title, updated,
    (SELECT count(*) FROM message WHERE conversation_id = conversation.id AND deleted IS NULL) AS messages,
    coalesce((SELECT substr(content, 1, 200) FROM message WHERE conversation_id = conversation.id
              AND deleted IS NULL AND role = 'user' ORDER BY id LIMIT 1), '') AS preview
FROM conversation
WHERE {which} AND EXISTS (
    SELECT 1 FROM message WHERE conversation_id = conversation.id AND deleted IS NULL
)
ORDER BY updated DESC, id DESC LIMIT ? OFFSET ?
"""
_LIVING = _SUMMARIES.format(which="deleted IS NULL")
_DELETED = _SUMMARIES.format(which="deleted IS NOT NULL")


class Conversations(Transactions):
    """The table `conversation`."""

    def create_conversation(self, settings: ConversationSettings) -> ConversationRecord:
        """A new, empty conversation."""
        now = self.clock()
        with self.transaction() as connection:
            cursor = connection.execute(
                "INSERT INTO conversation (created, updated, system, thinking, effort, sampling, tools)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (now, now, *rows.settings_columns(settings)),
            )
            return one(connection, tree.row_id(cursor))

    def conversation(self, conversation: int) -> ConversationRecord:
        """One conversation, also a deleted one. Raises StoreMissing if there is none of this number."""
        with self.reading() as connection:
            return one(connection, conversation)

    def numbers(self) -> set[int]:
        """The numbers of all conversations that are not deleted."""
        with self.reading() as connection:
            return set(_numbers(connection, "SELECT id FROM conversation WHERE deleted IS NULL"))

    def latest_conversation(self) -> ConversationRecord | None:
        """The conversation used last, or None in a fresh history."""
        with self.reading() as connection:
            row = connection.execute(
                "SELECT * FROM conversation WHERE deleted IS NULL ORDER BY updated DESC, id DESC LIMIT 1"
            ).fetchone()
            return None if row is None else rows.conversation(row)

    def note_open(self, conversation: int | None) -> None:
        """Remember which conversation is open, None for a new one, for `left_open`."""
        with self.reading() as connection:
            if _noted(connection) == (conversation,):
                return
        with self.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO left_open VALUES (1, ?)", (conversation,))

    def left_open(self) -> ConversationRecord | None:
        """What was noted last, None for a new one; without a note, or if it is gone, the one used last."""
        with self.reading() as connection:
            noted = _noted(connection)
            if noted == (None,):
                return None
            row = connection.execute(
                "SELECT * FROM conversation WHERE id = ? AND deleted IS NULL", noted or (None,)
            ).fetchone()
            return rows.conversation(row) if row else self.latest_conversation()

    def summaries(
        self, limit: int = 200, offset: int = 0, *, deleted: bool = False
    ) -> list[ConversationSummary]:
        """The conversations that have messages (or those that were deleted), the one used last first."""
        with self.reading() as connection:
            found = connection.execute(_DELETED if deleted else _LIVING, (limit, offset)).fetchall()
            return [ConversationSummary(**dict(row)) for row in found]

    def update_settings(self, conversation: int, settings: ConversationSettings) -> None:
        """Replace the settings of a conversation (its time of last use stays)."""
        with self.transaction() as connection:
            connection.execute(
                "UPDATE conversation SET system = ?, thinking = ?, effort = ?, sampling = ?, tools = ?,"
                " start = ? WHERE id = ?",
                (*rows.settings_columns(settings), settings.start, conversation),
            )

    def rename(self, conversation: int, title: str, by: str = "person") -> None:
        """Give a title; one given by a person is not replaced by "text" or "model".

        An empty title by a person takes the title away, so that an automatic one may come again.
        """
        guard = "" if by == "person" else " AND title_by <> 'person'"
        with self.transaction() as connection:
            connection.execute(
                f"UPDATE conversation SET title = ?, title_by = ? WHERE id = ?{guard}",
                (rows.storable(title), by if title else "none", conversation),
            )

    def delete(self, conversation: int) -> None:
        """Hide a conversation; `restore` brings it back, `purge` removes it for good."""
        with self.transaction() as connection:
            connection.execute(
                "UPDATE conversation SET deleted = ? WHERE id = ?", (self.clock(), conversation)
            )

    def restore(self, conversation: int) -> None:
        """Undo `delete`."""
        with self.transaction() as connection:
            connection.execute("UPDATE conversation SET deleted = NULL WHERE id = ?", (conversation,))

    def purge(self, conversation: int) -> None:
        """Remove a conversation with all its messages for good."""
        with self.transaction() as connection:
            _purge(connection, conversation)

    def purge_deleted(self, before: float) -> int:
        """Remove for good what was deleted before that time; returns how many entries."""
        with self.reading() as connection:
            talks = _numbers(connection, "SELECT id FROM conversation WHERE deleted < ?", before)
            messages = _numbers(connection, "SELECT id FROM message WHERE deleted < ?", before)
        if not talks and not messages:
            return 0
        with self.transaction() as connection:
            for message in messages:
                searching.forget_message(connection, message)
                connection.execute("DELETE FROM message WHERE id = ? AND deleted < ?", (message, before))
            for talk in talks:
                _purge(connection, talk)
        return len(talks) + len(messages)


def one(connection: sqlite3.Connection, number: int) -> ConversationRecord:
    """One conversation. Raises StoreMissing."""
    row = connection.execute("SELECT * FROM conversation WHERE id = ?", (number,)).fetchone()
    if row is None:
        raise StoreMissing("This conversation is not in the history any more.")
    return rows.conversation(row)


def _noted(connection: sqlite3.Connection) -> tuple[int | None] | None:
    row = connection.execute("SELECT conversation_id FROM left_open").fetchone()
    return None if row is None else (row[0],)


def _purge(connection: sqlite3.Connection, conversation: int) -> None:
    searching.forget(connection, conversation)
    connection.execute("DELETE FROM conversation WHERE id = ?", (conversation,))


def _numbers(connection: sqlite3.Connection, query: str, *values: float) -> list[int]:
    return [row[0] for row in connection.execute(query, values)]
