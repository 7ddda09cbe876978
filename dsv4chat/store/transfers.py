"""Whole conversations out of the history and into it, with all branches, for export and import."""

import sqlite3
from collections.abc import Mapping, Sequence

from dsv4chat.store import generations, rows, searching, tree
from dsv4chat.store.conversations import one
from dsv4chat.store.errors import StoreError
from dsv4chat.store.figures import TokenFigures
from dsv4chat.store.messages import some
from dsv4chat.store.records import ConversationRecord, MessageRecord
from dsv4chat.store.transactions import Transactions


class Transfers(Transactions):
    """Conversations as wholes."""

    def whole(self, conversation: int) -> tuple[ConversationRecord, list[MessageRecord]]:
        """A conversation and its messages of all branches, oldest first. Raises StoreMissing."""
        with self.reading() as connection:
            record = one(connection, conversation)
            ids = connection.execute(
                "SELECT id FROM message WHERE conversation_id = ? AND deleted IS NULL ORDER BY id",
                (conversation,),
            )
            return record, some(connection, [row[0] for row in ids])

    def add_whole(
        self,
        conversation: ConversationRecord,
        messages: Sequence[MessageRecord],
        figures: Mapping[int, TokenFigures] | None = None,
    ) -> int:
        """Add a conversation as it is, under new numbers; returns its own.

        messages: each after its parent; their numbers and `active_leaf` need only agree among themselves.
        figures: by message, of those that have any. Raises StoreError if a parent is not there.
        """
        settings = rows.settings_columns(conversation.settings)
        with self.transaction() as connection:
            cursor = connection.execute(
                "INSERT INTO conversation (title, title_by, created, updated, system, thinking, effort,"
                " sampling, tools) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    rows.storable(conversation.title),
                    conversation.title_by,
                    conversation.created,
                    conversation.updated,
                    *settings,
                ),
            )
            number = tree.row_id(cursor)
            new: dict[int, int] = {}
            for message in messages:
                if message.id in new or (message.parent is not None and message.parent not in new):
                    raise StoreError(f"Message {message.id} is there twice, or before the one it follows.")
                parent = None if message.parent is None else new[message.parent]
                new[message.id] = _insert(connection, number, parent, message)
                made = (figures or {}).get(message.id)
                if made:
                    generations.append(connection, new[message.id], 0, made)
            if new:
                leaf = new.get(conversation.active_leaf or 0, new[messages[-1].id])
                tree.activate(connection, self.clock(), number, leaf)
            return number


def _insert(
    connection: sqlite3.Connection, conversation: int, parent: int | None, message: MessageRecord
) -> int:
    content = rows.storable(message.content)
    reasoning = message.reasoning and rows.storable(message.reasoning)
    cursor = connection.execute(
        "INSERT INTO message (conversation_id, parent_id, role, content, reasoning, state, error,"
        " tool_call_id, thinking, effort, created, updated, shown)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            conversation,
            parent,
            message.role,
            content,
            reasoning,
            "interrupted" if message.state == "writing" else message.state,
            message.error and rows.storable(message.error),
            message.tool_call_id and rows.storable(message.tool_call_id),
            message.thinking,
            message.effort,
            message.created,
            message.updated or message.created,
            message.created,
        ),
    )
    number = tree.row_id(cursor)
    rows.write_tool_calls(connection, number, message.tool_calls)
    connection.executemany(
        "UPDATE tool_call SET approval = ? WHERE message_id = ? AND position = ?",
        [(approval, number, position) for position, approval in enumerate(message.approvals)],
    )
    if message.generation is not None:
        generations.write(connection, number, message.generation)
    searching.index(connection, number, content, reasoning)
    return number
