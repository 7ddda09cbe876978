"""Rows of the tables to records and back."""

import json
import sqlite3
from collections.abc import Iterator, Sequence

from dsv4chat.encoding import ToolCall
from dsv4chat.store import generations
from dsv4chat.store.records import ConversationRecord, ConversationSettings, MessageRecord

_AT_ONCE = 500  # ids in one query


def storable(text: str) -> str:
    """`text` without half surrogate pairs, which UTF-8 cannot hold: U+FFFD instead."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def settings_columns(settings: ConversationSettings) -> tuple[object, ...]:
    """system, thinking, effort, sampling, tools as they stand in the table."""
    return (
        storable(settings.system),
        int(settings.thinking),
        settings.effort,
        json.dumps(settings.sampling),
        json.dumps(settings.tools),
    )


def conversation(row: sqlite3.Row) -> ConversationRecord:
    """A row of `conversation`."""
    return ConversationRecord(
        id=row["id"],
        title=row["title"],
        title_by=row["title_by"],
        created=row["created"],
        updated=row["updated"],
        active_leaf=row["active_leaf"],
        settings=ConversationSettings(
            row["system"],
            bool(row["thinking"]),
            row["effort"],
            json.loads(row["sampling"]),
            json.loads(row["tools"]),
            row["start"] if "start" in row.keys() else None,  # noqa: SIM118 - a row of an older file has none
        ),
    )


def messages(connection: sqlite3.Connection, ids: Sequence[int]) -> list[MessageRecord]:
    """The messages with these ids that exist, in the order of `ids`, with tool calls, tokens and figures."""
    found: dict[int, MessageRecord] = {}
    for start in range(0, len(ids), _AT_ONCE):
        for record in _some(connection, tuple(ids[start : start + _AT_ONCE])):
            found[record.id] = record
    return [found[number] for number in ids if number in found]


def _some(connection: sqlite3.Connection, ids: tuple[int, ...]) -> Iterator[MessageRecord]:
    marks = ", ".join("?" * len(ids))
    calls: dict[int, list[sqlite3.Row]] = {}
    for row in connection.execute(
        f"SELECT * FROM tool_call WHERE message_id IN ({marks}) ORDER BY message_id, position", ids
    ):
        calls.setdefault(row["message_id"], []).append(row)
    made = generations.read(connection, ids)
    sampled = generations.ids(connection, ids)
    for row in connection.execute(f"SELECT * FROM message WHERE id IN ({marks})", ids):
        number = row["id"]
        yield MessageRecord(
            id=number,
            conversation=row["conversation_id"],
            parent=row["parent_id"],
            role=row["role"],
            content=row["content"],
            created=row["created"],
            updated=row["updated"],
            state=row["state"],
            reasoning=row["reasoning"],
            error=row["error"],
            tool_call_id=row["tool_call_id"],
            thinking=None if row["thinking"] is None else bool(row["thinking"]),
            effort=row["effort"],
            tool_calls=tuple(_tool_call(call) for call in calls.get(number, ())),
            approvals=tuple(call["approval"] for call in calls.get(number, ())),
            ids=sampled.get(number, ()),
            generation=made.get(number),
        )


def write_tool_calls(connection: sqlite3.Connection, message: int, calls: Sequence[ToolCall]) -> None:
    """Make `calls` the calls of a message; what was approved already stays approved."""
    connection.executemany(
        "INSERT INTO tool_call (message_id, position, call_id, name, arguments, valid, error)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (message_id, position) DO UPDATE SET"
        " call_id = excluded.call_id, name = excluded.name, arguments = excluded.arguments,"
        " valid = excluded.valid, error = excluded.error",
        [
            (
                message,
                position,
                storable(call.id),
                storable(call.name),
                storable(call.arguments),
                int(call.valid),
                None if call.error is None else storable(call.error),
            )
            for position, call in enumerate(calls)
        ],
    )


def _tool_call(row: sqlite3.Row) -> ToolCall:
    return ToolCall(
        id=row["call_id"],
        name=row["name"],
        arguments=row["arguments"],
        valid=bool(row["valid"]),
        error=row["error"],
    )
