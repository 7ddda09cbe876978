"""What is exchanged: one conversation with all its branches, as the history's records."""

from dataclasses import dataclass, field

from dsv4chat.store import ConversationRecord, MessageRecord, Repository, TokenFigures


class ExchangeError(Exception):
    """A file that cannot be read as conversations; `str(error)` is a sentence for a person."""


@dataclass(frozen=True)
class WholeConversation:
    """messages: of all branches, each after its parent. figures: by message, of answers that have any."""

    record: ConversationRecord
    messages: list[MessageRecord]
    figures: dict[int, TokenFigures] = field(default_factory=dict)

    @classmethod
    def of(cls, history: Repository, conversation: int, *, figures: bool = True) -> "WholeConversation":
        """Read it from the history. Raises StoreError."""
        record, messages = history.whole(conversation)
        measured = {m.id: history.figures(m.id) for m in messages if m.ids} if figures else {}
        return cls(record, messages, measured)

    def add_to(self, history: Repository) -> int:
        """Write it to the history; returns its number there. Raises StoreError."""
        return history.add_whole(self.record, self.messages, self.figures)

    def active_path(self) -> list[MessageRecord]:
        """The messages that are shown, from the first one down."""
        by_id = {message.id: message for message in self.messages}
        path: list[MessageRecord] = []
        number = self.record.active_leaf
        while number is not None and number in by_id:
            path.append(by_id.pop(number))
            number = path[-1].parent
        return path[::-1]
