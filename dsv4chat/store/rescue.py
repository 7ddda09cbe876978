"""Copying one conversation, numbers and all, out of a history that cannot be written any more."""

import sqlite3
from contextlib import suppress

from dsv4chat.store.repository import Repository

_OF_MESSAGE = "message_id IN (SELECT id FROM message WHERE conversation_id = ?)"
_TABLES = (
    ("conversation", "id = ?"),
    ("message", "conversation_id = ?"),
    ("tool_call", _OF_MESSAGE),
    ("generation", _OF_MESSAGE),
    ("token_block", _OF_MESSAGE),
    ("approval", "conversation_id IS NULL OR conversation_id = ?"),
    ("draft", "conversation_id = ?"),
)


def copy_conversation(source: Repository, target: Repository, conversation: int) -> None:
    """Copy what can still be read of a conversation; what cannot is left out."""
    with target.transaction() as writing:
        for table, condition in _TABLES:
            with suppress(sqlite3.Error):
                for row in source.connection.execute(
                    f"SELECT * FROM {table} WHERE {condition}", (conversation,)
                ):
                    marks = ", ".join("?" * len(row))
                    names = ", ".join(row.keys())
                    writing.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row))
        writing.execute(
            "UPDATE message SET writer = ? WHERE state = 'writing' AND conversation_id = ?",
            (target.instance.name, conversation),
        )
