"""What a person allowed tools to do: for one call, always, never; everywhere or in one conversation."""

from dsv4chat.store.errors import StoreMissing
from dsv4chat.store.transactions import Transactions

DECISIONS = ("once", "always", "never")


class Approvals(Transactions):
    """The table `approval`, and the column of that name of `tool_call`."""

    def approvals(self, conversation: int | None = None) -> dict[str, str]:
        """Tool names with "always" or "never"; what was said in `conversation` goes before the rest."""
        with self.reading() as connection:
            found = connection.execute(
                "SELECT tool, decision FROM approval WHERE conversation_id IS NULL OR conversation_id = ?"
                " ORDER BY conversation_id NULLS FIRST",
                (conversation,),
            )
            return {row["tool"]: row["decision"] for row in found}

    def set_approval(self, tool: str, decision: str | None, conversation: int | None = None) -> None:
        """Keep "always" or "never" for a tool, everywhere or in one conversation; None forgets it."""
        with self.transaction() as connection:
            connection.execute(
                "DELETE FROM approval WHERE tool = ? AND conversation_id IS ?", (tool, conversation)
            )
            if decision is not None:
                connection.execute(
                    "INSERT INTO approval (tool, conversation_id, decision, created) VALUES (?, ?, ?, ?)",
                    (tool, conversation, decision, self.clock()),
                )

    def decide_call(self, message: int, position: int, decision: str) -> None:
        """Note what was decided ("once", "always", "never") for call number `position` of a message.

        Raises StoreMissing if there is no such call.
        """
        with self.transaction() as connection:
            cursor = connection.execute(
                "UPDATE tool_call SET approval = ? WHERE message_id = ? AND position = ?",
                (decision, message, position),
            )
            if cursor.rowcount == 0:
                raise StoreMissing("This tool call is not in the history any more.")
