"""The tables `generation` and `token_block`: how an answer was made and what each of its tokens measured."""

import json
import sqlite3
import sys
from array import array
from collections.abc import Sequence
from dataclasses import fields

from dsv4chat.store.errors import StoreDamaged
from dsv4chat.store.figures import PackedFigures, TokenFigures, numbers, pack, unpack
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
    """The figures of those of `messages` that have any; at most a few hundred at once."""
    found = {}
    for row in connection.execute(
        f"SELECT * FROM generation WHERE message_id IN ({', '.join('?' * len(messages))})", tuple(messages)
    ):
        values = {name: row[name] for name in _COLUMNS}
        values["sampling"] = json.loads(row["sampling"])
        found[row["message_id"]] = GenerationRecord(**values)
    return found


def ids(connection: sqlite3.Connection, messages: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """The sampled ids of those of `messages` that have any, in order; at most a few hundred at once."""
    sampled: dict[int, array[int]] = {}
    for row in connection.execute(
        f"SELECT message_id, ids FROM token_block WHERE message_id IN ({', '.join('?' * len(messages))})"
        " ORDER BY message_id, start",
        tuple(messages),
    ):
        sampled.setdefault(row["message_id"], array("I")).frombytes(row["ids"])
    if sys.byteorder == "big":
        for found in sampled.values():
            found.byteswap()
    return {message: tuple(found) for message, found in sampled.items()}


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


def figures(
    connection: sqlite3.Connection, message: int, start: int = 0, end: int | None = None
) -> TokenFigures:
    """The tokens of an answer from number `start` up to `end` (all) with their figures."""
    layers = _layers(connection, message)
    end = 2**62 if end is None else end
    whole = TokenFigures()
    for row in connection.execute(
        "SELECT start, count, ids, kinds, milliseconds, logprobs, residual, alternatives FROM token_block"
        " WHERE message_id = ? AND start < ? AND start + count > ? ORDER BY start",
        (message, end, start),
    ):
        block = unpack(PackedFigures(*row[1:]), layers)
        first = row["start"]
        if first < start or first + len(block) > end:
            block = block.part(max(0, start - first), end - first)
        whole.extend(block)
    return whole


def logprobs(connection: sqlite3.Connection, message: int) -> list[float]:
    """The log-probability of each token of an answer."""
    found: list[float] = []
    for row in connection.execute(
        "SELECT logprobs FROM token_block WHERE message_id = ? ORDER BY start", (message,)
    ):
        found += numbers("f", row["logprobs"])
    return found


def _layers(connection: sqlite3.Connection, message: int) -> int:
    row = connection.execute("SELECT layers FROM generation WHERE message_id = ?", (message,)).fetchone()
    return 0 if row is None else int(row["layers"])
