"""Messages and their branches: reading a path or a part of it, adding, editing, deleting with undo."""

import sqlite3
from collections.abc import Sequence

from dsv4chat.encoding import ToolCall
from dsv4chat.store import rows, searching, tree
from dsv4chat.store.errors import StoreMissing
from dsv4chat.store.records import Branch, Deleted, MessageRecord
from dsv4chat.store.transactions import Transactions


class Messages(Transactions):
    """The table `message`, as a tree. Deleted messages are left out everywhere."""

    # -- reading ---------------------------------------------------------------------------------------

    def message(self, message: int) -> MessageRecord:
        """One message. Raises StoreMissing if there is none of this number."""
        return self.messages([message])[0]

    def messages(self, ids: Sequence[int]) -> list[MessageRecord]:
        """The messages with these numbers, in this order. Raises StoreMissing if one is not there."""
        with self.reading() as connection:
            return some(connection, ids)

    def path(self, leaf: int | None, last: int | None = None) -> list[MessageRecord]:
        """The messages from the first one down to `leaf`, or only the `last` ones of them; [] for None.

        The page before a page is `path(page[0].parent, last=...)`.
        """
        if leaf is None:
            return []
        with self.reading() as connection:
            return some(connection, tree.path(connection, leaf, last))

    def path_ids(self, leaf: int | None) -> list[int]:
        """The numbers of the messages from the first one down to `leaf`, without reading any text."""
        if leaf is None:
            return []
        with self.reading() as connection:
            return tree.path(connection, leaf)

    def siblings(self, message: int) -> list[int]:
        """The branches at a message: itself and the others under the same parent, oldest first."""
        with self.reading() as connection:
            return tree.siblings(connection, message)

    def branches(self, messages: Sequence[int]) -> dict[int, Branch]:
        """Those of `messages` that have other branches beside them, and where they stand among these."""
        with self.reading() as connection:
            found = tree.siblings_of(connection, messages)
        return {
            message: Branch(ids.index(message), tuple(ids))
            for message, ids in found.items()
            if len(ids) > 1 and message in ids
        }

    def newest_leaf(self, message: int) -> int:
        """The end of the branch under `message` where one was last. Raises StoreMissing."""
        with self.reading() as connection:
            return tree.last_shown_leaf(connection, message)

    # -- branches --------------------------------------------------------------------------------------

    def activate(self, conversation: int, leaf: int | None) -> None:
        """Show the branch that ends in `leaf` from now on."""
        with self.transaction() as connection:
            tree.activate(connection, self.clock(), conversation, leaf)

    def switch(self, message: int) -> int:
        """Show the branch through `message`, down to where one was last; returns its leaf.

        Raises StoreMissing.
        """
        with self.transaction() as connection:
            (record,) = some(connection, [message])
            leaf = tree.last_shown_leaf(connection, message)
            tree.activate(connection, self.clock(), record.conversation, leaf)
            return leaf

    # -- writing ---------------------------------------------------------------------------------------

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
        """Add a finished message under `parent` and make it the active leaf.

        A conversation or parent that was deleted comes back. Raises StoreMissing if it is gone for good.
        """
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
                tool_call_id=tool_call_id and rows.storable(tool_call_id),
            )
            rows.write_tool_calls(connection, number, tool_calls)
            searching.index(connection, number, content, reasoning)
            return some(connection, [number])[0]

    def edit(self, message: int, content: str) -> MessageRecord:
        """A person's message said differently: a new branch beside `message`. Raises StoreMissing."""
        old = self.message(message)
        return self.add_message(old.conversation, old.parent, old.role, content)

    def delete_message(self, message: int) -> Deleted:
        """Hide a message with all that follows it; what is shown then is the branch beside it.

        `restore_message` undoes it. Raises StoreMissing.
        """
        with self.transaction() as connection:
            (record,) = some(connection, [message])
            stamp = _unused_stamp(connection, self.clock())
            before = connection.execute(
                "SELECT active_leaf FROM conversation WHERE id = ?", (record.conversation,)
            ).fetchone()[0]
            hidden = tree.below(connection, message)
            if before in hidden:
                beside = tree.leaf_beside(connection, message)
                connection.execute(
                    "UPDATE conversation SET active_leaf = ? WHERE id = ?", (beside, record.conversation)
                )
            tree.hide(connection, stamp, hidden)
            return Deleted(record.conversation, message, len(hidden), before, stamp)

    def restore_message(self, deleted: Deleted) -> None:
        """Undo `delete_message`, back to the branch that was shown."""
        with self.transaction() as connection:
            tree.unhide(connection, deleted.stamp, deleted.conversation)
            (record,) = some(connection, [deleted.message])
            tree.reveal(connection, deleted.conversation, record.parent)
            tree.activate(connection, self.clock(), deleted.conversation, deleted.leaf_before)


def some(connection: sqlite3.Connection, ids: Sequence[int]) -> list[MessageRecord]:
    """The messages with these numbers, in this order. Raises StoreMissing if one is not there."""
    found = rows.messages(connection, ids)
    if len(found) != len(ids):
        raise StoreMissing("This message is not in the history any more.")
    return found


def _unused_stamp(connection: sqlite3.Connection, now: float) -> float:
    """A time at which nothing was deleted yet: it says what was hidden together."""
    newest: float | None = connection.execute("SELECT max(deleted) FROM message").fetchone()[0]
    return now if newest is None or newest < now else newest + 0.001
