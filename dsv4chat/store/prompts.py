"""What a person typed: messages sent before, from all conversations, and text that was not sent yet."""

from dsv4chat.store import rows
from dsv4chat.store.records import Prompt
from dsv4chat.store.transactions import Transactions

_NEW = 0  # the slot of a draft that belongs to no conversation yet


class Prompts(Transactions):
    """Prompt history, read from the messages, and the table `draft`."""

    def prompts(self, limit: int = 100, before: int | None = None, beginning: str = "") -> list[Prompt]:
        """Messages a person sent, newest first, each text once, that begin with `beginning`.

        before: the number of a message; only older ones, for the next page.
        """
        found: dict[str, Prompt] = {}
        with self.reading() as connection:
            for row in connection.execute(
                "SELECT id, content FROM message WHERE role = 'user' AND deleted IS NULL AND id < ?"
                " AND substr(content, 1, ?) = ? ORDER BY id DESC",
                (2**62 if before is None else before, len(beginning), rows.storable(beginning)),
            ):
                if row["content"].strip():
                    found.setdefault(row["content"], Prompt(row["id"], row["content"]))
                if len(found) == limit:
                    break
        return list(found.values())

    def save_draft(self, conversation: int | None, text: str) -> None:
        """Keep unsent text of a conversation, or of a new one for None; "" forgets it.

        Nothing is kept for a conversation that is not there any more.
        """
        slot = _NEW if conversation is None else conversation
        with self.transaction() as connection:
            if not text:
                connection.execute("DELETE FROM draft WHERE slot = ?", (slot,))
                return
            connection.execute(
                "INSERT OR REPLACE INTO draft (slot, conversation_id, text, updated) SELECT ?, ?, ?, ?"
                " WHERE ? = 0 OR EXISTS (SELECT 1 FROM conversation WHERE id = ?)",
                (slot, conversation, rows.storable(text), self.clock(), slot, slot),
            )

    def draft(self, conversation: int | None) -> str:
        """The unsent text of a conversation, or of a new one for None; "" if there is none."""
        with self.reading() as connection:
            row = connection.execute(
                "SELECT text FROM draft WHERE slot = ?", (_NEW if conversation is None else conversation,)
            ).fetchone()
            return "" if row is None else str(row["text"])
