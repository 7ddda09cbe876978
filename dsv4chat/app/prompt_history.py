"""What was sent before, to be brought back into the input: the newest first, like in a shell."""

from collections.abc import Iterable


class PromptHistory:
    """A list of texts and a place in it. What was in the input when one began to go back is kept below."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._entries = list(entries)
        self._at = len(self._entries)
        self._draft = ""
        self._shown = ""

    def add(self, text: str) -> None:
        """`text` was sent: it is the newest entry, and one begins below it again."""
        if text in self._entries:
            self._entries.remove(text)
        self._entries.append(text)
        self._at = len(self._entries)

    def extend_back(self, entries: Iterable[str]) -> None:
        """Put older entries before those that are there, none of them twice."""
        known = set(self._entries)
        older = [entry for entry in entries if entry not in known]
        self._entries[:0] = older
        self._at += len(older)

    def back(self, text: str) -> str | None:
        """The entry before; `text` is what is in the input now. None at the oldest one."""
        if text != self._shown or self._at == len(self._entries):
            self._draft, self._at = text, len(self._entries)
        if self._at == 0:
            return None
        self._at -= 1
        self._shown = self._entries[self._at]
        return self._shown

    def forward(self, text: str) -> str | None:
        """The entry after, at last what was there at the beginning; None if one has not gone back."""
        if self._at == len(self._entries) or text != self._shown:
            return None
        self._at += 1
        self._shown = self._draft if self._at == len(self._entries) else self._entries[self._at]
        return self._shown
