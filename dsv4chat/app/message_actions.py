"""What keys and the mouse do to a message of the transcript."""

from collections.abc import Callable

from dsv4chat.app.session import ChatSession
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.store import MessageRecord


class MessageActions:
    """Carries out what `Transcript.Asked` and `BranchWanted` say; the callables are the screen's."""

    def __init__(
        self,
        session: ChatSession,
        composer: Composer,
        *,
        copy: Callable[[str], None],
        look: Callable[[MessageRecord], None],
        notify: Callable[[str, str], None],
    ) -> None:
        self._session = session
        self._composer = composer
        self._copy = copy
        self._look = look
        self._notify = notify

    def do(self, action: str, record: MessageRecord) -> None:
        """One of "edit", "regenerate", "resume", "back", "on", "copy", "look", "delete", "undo"."""
        tree = self._session.tree
        match action:
            case "edit":
                self._edit(record)
            case "regenerate":
                self._regenerate(record)
            case "resume":
                tree.resume()
            case "back" | "on":
                self.switch(record.id, -1 if action == "back" else 1)
            case "copy":
                self._copy(record.content or record.reasoning or "")
            case "look":
                self._look(record)
            case "delete":
                tree.delete(record.id)
            case "undo":
                tree.undo()

    def switch(self, message: int, step: int) -> None:
        """Show the branch `step` places further at a message."""
        if message not in self._session.branches:
            self._notify("There is no other branch at this message.", "information")
        else:
            self._session.tree.switch(message, step)

    def edit_last(self) -> None:
        """Edit the last message of the person."""
        last = next((record for record in reversed(self._session.path) if record.role == "user"), None)
        if last is not None:
            self._edit(last)

    def _edit(self, record: MessageRecord) -> None:
        if record.role != "user":
            path = self._session.path
            at = next((at for at, other in enumerate(path) if other.id == record.id), 0)
            asked = next((other for other in reversed(path[:at]) if other.role == "user"), None)
            if asked is None:
                return
            record = asked  # an answer itself is the model's: what is edited is the message it answers
        self._composer.begin_edit(record.id, record.content)
        self._composer.focus()

    def _regenerate(self, record: MessageRecord) -> None:
        path = self._session.path
        at = next((at for at, other in enumerate(path) if other.id == record.id), None)
        if at is None:
            return
        answer = next((other for other in path[at:] if other.role == "assistant"), None)
        self._session.tree.regenerate(answer.id if answer else None)
