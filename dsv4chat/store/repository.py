"""Reading and writing the history: conversations and messages as records. One thread at a time.

Every public method is one transaction and raises StoreError (never sqlite3's errors). Token figures and
full-text search are in `generations.py` and `searching.py`, over the same connection.
"""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from dsv4chat.encoding import ToolCall
from dsv4chat.store import generations, rows, searching, tree
from dsv4chat.store.errors import StoreDamaged, StoreMissing, StoreUnwritable
from dsv4chat.store.figures import TokenFigures
from dsv4chat.store.instance import Instance
from dsv4chat.store.records import (
    ConversationRecord,
    ConversationSettings,
    ConversationSummary,
    Found,
    GenerationRecord,
    MessageRecord,
)

_SUMMARIES = """
SELECT id, title, updated,
    (SELECT count(*) FROM message WHERE conversation_id = conversation.id) AS messages,
    coalesce((SELECT substr(content, 1, 200) FROM message
              WHERE conversation_id = conversation.id AND role = 'user' ORDER BY id LIMIT 1), '') AS preview
FROM conversation
WHERE deleted IS NULL AND EXISTS (SELECT 1 FROM message WHERE conversation_id = conversation.id)
ORDER BY updated DESC, id DESC LIMIT ? OFFSET ?
"""


class Repository:
    """The history behind one SQLite connection. `clock` gives the time in seconds since 1970."""

    def __init__(
        self, connection: sqlite3.Connection, instance: Instance, clock: Callable[[], float] = time.time
    ) -> None:
        self.connection = connection
        self.instance = instance
        self.clock = clock
        connection.row_factory = sqlite3.Row

    def close(self) -> None:
        """Close the file; unfinished answers of this program become interrupted."""
        with suppress(StoreUnwritable, StoreDamaged):
            self.recover(own=True)
        self.instance.close()
        self.connection.close()

    # -- conversations ---------------------------------------------------------------------------------

    def create_conversation(self, settings: ConversationSettings) -> ConversationRecord:
        """A new, empty conversation."""
        now = self.clock()
        with self.transaction() as connection:
            cursor = connection.execute(
                "INSERT INTO conversation (created, updated, system, thinking, effort, sampling, tools)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (now, now, *rows.settings_columns(settings)),
            )
            return self._conversation(connection, tree.row_id(cursor))

    def conversation(self, conversation: int) -> ConversationRecord:
        """One conversation. Raises StoreMissing if there is none of this number."""
        with self._reading() as connection:
            return self._conversation(connection, conversation)

    def latest_conversation(self) -> ConversationRecord | None:
        """The conversation used last, or None in a fresh history."""
        with self._reading() as connection:
            row = connection.execute(
                "SELECT * FROM conversation WHERE deleted IS NULL ORDER BY updated DESC, id DESC LIMIT 1"
            ).fetchone()
            return None if row is None else rows.conversation(row)

    def summaries(self, limit: int = 200, offset: int = 0) -> list[ConversationSummary]:
        """The conversations that have messages, the one used last first."""
        with self._reading() as connection:
            found = connection.execute(_SUMMARIES, (limit, offset)).fetchall()
            return [ConversationSummary(**dict(row)) for row in found]

    def update_settings(self, conversation: int, settings: ConversationSettings) -> None:
        """Replace the settings of a conversation (its time of last use stays)."""
        with self.transaction() as connection:
            connection.execute(
                "UPDATE conversation SET system = ?, thinking = ?, effort = ?, sampling = ?, tools = ?"
                " WHERE id = ?",
                (*rows.settings_columns(settings), conversation),
            )

    def rename(self, conversation: int, title: str, by: str = "person") -> None:
        """Give a title; one given by a person is not replaced by "text" or "model"."""
        guard = "" if by == "person" else " AND title_by <> 'person'"
        with self.transaction() as connection:
            connection.execute(
                f"UPDATE conversation SET title = ?, title_by = ? WHERE id = ?{guard}",
                (rows.storable(title), by, conversation),
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
            searching.forget(connection, conversation)
            connection.execute("DELETE FROM conversation WHERE id = ?", (conversation,))

    # -- messages --------------------------------------------------------------------------------------

    def message(self, message: int) -> MessageRecord:
        """One message. Raises StoreMissing if there is none of this number."""
        with self._reading() as connection:
            return self._messages(connection, [message])[0]

    def path(self, leaf: int | None) -> list[MessageRecord]:
        """The messages from the first one down to `leaf`; [] for None."""
        if leaf is None:
            return []
        with self._reading() as connection:
            return self._messages(connection, tree.path(connection, leaf))

    def siblings(self, message: int) -> list[int]:
        """The branches at a message: itself and the others under the same parent, oldest first."""
        with self._reading() as connection:
            return tree.siblings(connection, message)

    def newest_leaf(self, message: int) -> int:
        """The end of the branch under `message` that was written last."""
        with self._reading() as connection:
            return tree.newest_leaf(connection, message)

    def activate(self, conversation: int, leaf: int | None) -> None:
        """Show the branch that ends in `leaf` from now on."""
        with self.transaction() as connection:
            connection.execute("UPDATE conversation SET active_leaf = ? WHERE id = ?", (leaf, conversation))

    def add_message(
        self,
        conversation: int,
        parent: int | None,
        role: str,
        content: str,
        *,
        reasoning: str | None = None,
        tool_call_id: str | None = None,
        tool_calls: Sequence[ToolCall] = (),
    ) -> MessageRecord:
        """Add a finished message under `parent` and make it the active leaf."""
        content, reasoning = rows.storable(content), reasoning and rows.storable(reasoning)
        with self.transaction() as connection:
            number = tree.insert(
                connection,
                self.clock(),
                conversation,
                parent,
                role,
                content,
                reasoning=reasoning,
                tool_call_id=tool_call_id,
            )
            rows.write_tool_calls(connection, number, tool_calls)
            searching.index(connection, number, content, reasoning)
            return self._messages(connection, [number])[0]

    def begin_answer(
        self,
        conversation: int,
        parent: int,
        generation: GenerationRecord,
        *,
        thinking: bool,
        effort: str | None,
    ) -> MessageRecord:
        """Add an empty answer in state "writing" under `parent` and make it the active leaf."""
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
            return self._messages(connection, [number])[0]

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
        content, reasoning = rows.storable(content), reasoning and rows.storable(reasoning)
        with self.transaction() as connection:
            tree.update_answer(connection, self.clock(), answer, content, reasoning)
            rows.write_tool_calls(connection, answer, tool_calls)
            generations.append(connection, answer, start, new)

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
        content, reasoning = rows.storable(content), reasoning and rows.storable(reasoning)
        with self.transaction() as connection:
            tree.update_answer(connection, self.clock(), answer, content, reasoning)
            rows.write_tool_calls(connection, answer, tool_calls)
            generations.append(connection, answer, start, new)
            generations.write(connection, answer, generation)
            connection.execute(
                "UPDATE message SET state = ?, error = ?, writer = NULL WHERE id = ?", (state, error, answer)
            )
            searching.index(connection, answer, content, reasoning)

    def figures(self, answer: int) -> TokenFigures:
        """What was measured for each token of an answer."""
        with self._reading() as connection:
            return generations.figures(connection, answer)

    def search(self, words: str, limit: int = 50) -> list[Found]:
        """Messages with all `words` (the last one may be a beginning), best first."""
        with self._reading() as connection:
            return searching.search(connection, words, limit)

    def recover(self, own: bool = False) -> int:
        """Mark answers whose writer has died (`own`: this program's too) as interrupted; returns how many."""
        with self._reading() as connection:
            writers = tree.writers(connection)
        mine = self.instance.name
        dead = [name for name in writers if (own if name == mine else not self._lives(name))]
        if not dead:
            return 0
        with self.transaction() as connection:
            left = tree.interrupt(connection, dead)
            for row in left:
                searching.index(connection, row["id"], row["content"], row["reasoning"])
            return len(left)

    # -- inside ----------------------------------------------------------------------------------------

    def _lives(self, writer: str | None) -> bool:
        return writer is not None and self.instance.alive(writer)

    def _conversation(self, connection: sqlite3.Connection, number: int) -> ConversationRecord:
        row = connection.execute("SELECT * FROM conversation WHERE id = ?", (number,)).fetchone()
        if row is None:
            raise StoreMissing("This conversation is not in the history any more.")
        return rows.conversation(row)

    def _messages(self, connection: sqlite3.Connection, ids: Sequence[int]) -> list[MessageRecord]:
        found = rows.messages(connection, ids)
        if len(found) != len(ids):
            raise StoreMissing("This message is not in the history any more.")
        return found

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self.connection
        except sqlite3.Error as error:
            raise _translate(error) from error
        except (ValueError, json.JSONDecodeError) as error:
            raise StoreDamaged(f"An entry of the history cannot be read ({error}).") from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it or nothing. Raises StoreError."""
        with self._reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise


def _translate(error: sqlite3.Error) -> StoreUnwritable | StoreDamaged:
    if isinstance(error, sqlite3.OperationalError):
        return StoreUnwritable(f"The history cannot be written ({error}).")
    return StoreDamaged(f"The history is damaged ({error}).")
