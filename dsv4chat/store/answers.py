"""Answers while they are made: begun empty, written about once a second, finished or interrupted."""

import sqlite3
from collections.abc import Sequence

from dsv4chat.encoding import ToolCall
from dsv4chat.store import generations, rows, searching, tree
from dsv4chat.store.errors import StoreError
from dsv4chat.store.figures import TokenFigures
from dsv4chat.store.messages import some
from dsv4chat.store.records import GenerationRecord, MessageRecord
from dsv4chat.store.transactions import Transactions


class Answers(Transactions):
    """Messages of the assistant with their tables `generation` and `token_block`."""

    def begin_answer(
        self,
        conversation: int,
        parent: int,
        generation: GenerationRecord,
        *,
        thinking: bool,
        effort: str | None,
    ) -> MessageRecord:
        """Add an empty answer in state "writing" under `parent` and make it the active leaf.

        To answer again, give the parent of the old answer: the new one is a branch beside it.
        """
        with self.transaction() as connection:
            number = tree.insert(
                connection,
                self.clock(),
                conversation,
                parent,
                "assistant",
                "",
                state="writing",
                thinking=int(thinking),
                effort=effort,
                writer=self.instance.name,
            )
            generations.write(connection, number, generation)
            return some(connection, [number])[0]

    def resume_answer(self, answer: int) -> MessageRecord:
        """Put a finished answer into state "writing" again, to be continued where it stopped.

        Its tokens stay: the next ones have numbers from `len(ids)` on. Raises StoreError if it is being
        written already, StoreMissing if it is not there.
        """
        with self.transaction() as connection:
            (record,) = some(connection, [answer])
            if record.role != "assistant" or record.state == "writing":
                raise StoreError("Only an answer that has ended can be continued.")
            connection.execute(
                "UPDATE message SET state = 'writing', error = NULL, writer = ? WHERE id = ?",
                (self.instance.name, answer),
            )
            return some(connection, [answer])[0]

    def save_progress(
        self,
        answer: int,
        content: str,
        reasoning: str | None,
        start: int,
        new: TokenFigures,
        tool_calls: Sequence[ToolCall] = (),
    ) -> None:
        """Write what an answer says so far; `new` are its tokens from number `start` on."""
        with self.transaction() as connection:
            self._write(connection, answer, content, reasoning, start, new, tool_calls)

    def finish_answer(
        self,
        answer: int,
        state: str,
        content: str,
        reasoning: str | None,
        start: int,
        new: TokenFigures,
        generation: GenerationRecord,
        *,
        tool_calls: Sequence[ToolCall] = (),
        error: str | None = None,
    ) -> None:
        """Write the whole answer with its figures, and its state other than "writing"."""
        with self.transaction() as connection:
            self._write(connection, answer, content, reasoning, start, new, tool_calls)
            generations.write(connection, answer, generation)
            connection.execute(
                "UPDATE message SET state = ?, error = ?, writer = NULL WHERE id = ?",
                (state, error and rows.storable(error), answer),
            )
            searching.index(
                connection, answer, rows.storable(content), reasoning and rows.storable(reasoning)
            )

    def figures(self, answer: int, start: int = 0, end: int | None = None) -> TokenFigures:
        """What was measured for the tokens of an answer, from number `start` up to `end` (all of them)."""
        with self.reading() as connection:
            return generations.figures(connection, answer, start, end)

    def logprobs(self, answer: int) -> list[float]:
        """The natural log of each token's probability, without reading the other figures."""
        with self.reading() as connection:
            return generations.logprobs(connection, answer)

    def recover(self, own: bool = False) -> int:
        """Mark answers whose writer has died (`own`: this program's too) as interrupted; returns how many."""
        with self.reading() as connection:
            writers = [
                row[0]
                for row in connection.execute("SELECT DISTINCT writer FROM message WHERE state = 'writing'")
            ]
        mine = self.instance.name
        dead = [name for name in writers if (own if name == mine else not self._lives(name))]
        if not dead:
            return 0
        with self.transaction() as connection:
            left = _interrupt(connection, dead)
            for row in left:
                searching.index(connection, row["id"], row["content"], row["reasoning"])
            return len(left)

    def _lives(self, writer: str | None) -> bool:
        return writer is not None and self.instance.alive(writer)

    def _write(
        self,
        connection: sqlite3.Connection,
        answer: int,
        content: str,
        reasoning: str | None,
        start: int,
        new: TokenFigures,
        tool_calls: Sequence[ToolCall],
    ) -> None:
        connection.execute(
            "UPDATE message SET content = ?, reasoning = ?, updated = ? WHERE id = ?",
            (rows.storable(content), reasoning and rows.storable(reasoning), self.clock(), answer),
        )
        rows.write_tool_calls(connection, answer, tool_calls)
        generations.append(connection, answer, start, new)


def _interrupt(connection: sqlite3.Connection, writers: Sequence[str | None]) -> list[sqlite3.Row]:
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
