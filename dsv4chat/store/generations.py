"""The tables `generation` and `token_block`: how an answer was made and what each of its tokens measured."""

import json
import sqlite3
from array import array
from collections.abc import Sequence
from dataclasses import fields

from dsv4chat.store.errors import StoreDamaged
from dsv4chat.store.figures import PackedFigures, TokenFigures, pack, unpack
from dsv4chat.store.records import GenerationRecord

_COLUMNS = tuple(field.name for field in fields(GenerationRecord))


def write(connection: sqlite3.Connection, message: int, generation: GenerationRecord) -> None:
    """Insert or replace the figures of an answer."""
    values = {name: getattr(generation, name) for name in _COLUMNS}
    values["sampling"] = json.dumps(generation.sampling)
    names = ", ".join(_COLUMNS)
    connection.execute(
        f"INSERT OR REPLACE INTO generation (message_id, {names})"
        f" VALUES (?, {', '.join('?' * len(_COLUMNS))})",
        (message, *values.values()),
    )


def read(connection: sqlite3.Connection, messages: Sequence[int]) -> dict[int, GenerationRecord]:
    """The figures of those of `messages` that have any."""
    found = {}
    for message in messages:
        row = connection.execute("SELECT * FROM generation WHERE message_id = ?", (message,)).fetchone()
        if row is not None:
            values = {name: row[name] for name in _COLUMNS}
            values["sampling"] = json.loads(row["sampling"])
            found[message] = GenerationRecord(**values)
    return found


def ids(connection: sqlite3.Connection, messages: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """The sampled ids of each of `messages`, in order."""
    found = {}
    for message in messages:
        numbers: array[int] = array("I")
        for row in connection.execute(
            "SELECT ids, count FROM token_block WHERE message_id = ? ORDER BY start", (message,)
        ):
            numbers.frombytes(row["ids"])
        found[message] = tuple(numbers)
    return found


def append(connection: sqlite3.Connection, message: int, start: int, new: TokenFigures) -> None:
    """Write the tokens of an answer from number `start` on, which must be how many it has so far."""
    if not len(new):
        return
    have = connection.execute(
        "SELECT coalesce(sum(count), 0) FROM token_block WHERE message_id = ?", (message,)
    ).fetchone()[0]
    if have != start:
        raise StoreDamaged(f"Tokens {have} to {start} of an answer are missing in the history.")
    packed = pack(new, _layers(connection, message))
    connection.execute(
        "INSERT INTO token_block (message_id, start, count, ids, kinds, milliseconds, logprobs, residual,"
        " alternatives) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            message,
            start,
            packed.count,
            packed.ids,
            packed.kinds,
            packed.milliseconds,
            packed.logprobs,
            packed.residual,
            packed.alternatives,
        ),
    )


def figures(connection: sqlite3.Connection, message: int) -> TokenFigures:
    """All tokens of an answer with their figures."""
    layers = _layers(connection, message)
    whole = TokenFigures()
    for row in connection.execute(
        "SELECT count, ids, kinds, milliseconds, logprobs, residual, alternatives FROM token_block"
        " WHERE message_id = ? ORDER BY start",
        (message,),
    ):
        whole.extend(unpack(PackedFigures(*row), layers))
    return whole


def _layers(connection: sqlite3.Connection, message: int) -> int:
    row = connection.execute("SELECT layers FROM generation WHERE message_id = ?", (message,)).fetchone()
    return 0 if row is None else int(row["layers"])
