"""What a person does to the tree of messages: edit, answer again, continue, other branches, delete, undo."""

from typing import TYPE_CHECKING

from dsv4chat.app.events import Notice, PathChanged
from dsv4chat.app.wording import plural
from dsv4chat.store import Deleted, StoreError

if TYPE_CHECKING:
    from dsv4chat.app.session import ChatSession


class TreeActions:
    """Each method returns whether it began; what is refused is told in a notice. Messages are of the path."""

    def __init__(self, session: "ChatSession") -> None:
        self._session = session
        self._deleted: list[Deleted] = []

    def holds(self, message: int) -> bool:
        """Whether a message of the person is still there to be edited."""
        return self._position(message, "user") is not None

    def edit(self, message: int, text: str) -> bool:
        """Say something else instead of a message of the person; what was said stays as a branch."""
        at = self._position(message, "user")
        if at is None or not text.strip() or not self._may_answer():
            return False
        return self._session.begin_turn(self._edit(at, text))

    def regenerate(self, message: int | None = None) -> bool:
        """Another answer in place of `message`, or of the last one; the one there stays as a branch."""
        path = self._session.path
        if message is None:
            message = next((record.id for record in reversed(path) if record.role == "assistant"), None)
        at = None if message is None else self._position(message, "assistant")
        if at is None and path and path[-1].role != "assistant":
            at = len(path)  # a question without an answer: the program ended before one was begun
        if at is None or at == 0 or not self._may_answer():
            return False
        return self._session.begin_turn(self._regenerate(at))

    def resume(self) -> bool:
        """Go on with the last answer, which was stopped, cut off or interrupted."""
        session = self._session
        if not session.path or not self._may_answer():
            return False
        if not session.answers.can_resume(session.path[-1]):
            return self._refuse("Only an answer of this model that was stopped or cut off can be continued.")
        return session.begin_turn(self._resume())

    def switch(self, message: int, step: int) -> bool:
        """Show the branch `step` places further at a message."""
        branch = self._session.branches.get(message)
        if branch is None or not 0 <= branch.index + step < len(branch.ids) or not self.idle():
            return False
        self._session.begin(self.show_branch_of(branch.ids[branch.index + step]))
        return True

    def delete(self, message: int) -> bool:
        """Remove a message and all that follows it; `undo` brings it back."""
        if self._position(message) is None or not self.idle():
            return False
        self._session.begin(self._delete(message))
        return True

    @property
    def can_undo(self) -> bool:
        """Whether something was deleted in this conversation."""
        record = self._session.record
        return record is not None and any(deleted.conversation == record.id for deleted in self._deleted)

    def undo(self) -> bool:
        """Bring back what was deleted last in this conversation."""
        record = self._session.record
        if not self.idle():
            return False
        if record is None or not self.can_undo:
            return self._refuse("There is nothing to bring back.")
        self._session.begin(self._undo(record.id))
        return True

    def idle(self) -> bool:
        """Whether the conversation can be changed now."""
        if self._session.opened.switching:
            return self._refuse("Not while another conversation is being opened.")
        if self._session.elsewhere.writing:
            return self._refuse("Not while another window writes an answer here.")
        return not self._session.busy or self._refuse("Not while an answer is being written; Esc stops it.")

    # -- inside ----------------------------------------------------------------------------------------

    def _position(self, message: int, role: str | None = None) -> int | None:
        for at, record in enumerate(self._session.path):
            if record.id == message and role in (None, record.role):
                return at
        return None

    def _may_answer(self) -> bool:
        return self.idle() and (
            self._session.can_send or self._refuse("There is no engine to answer; F5 starts it.")
        )

    def _refuse(self, sentence: str) -> bool:
        self._session.events.append(Notice(sentence, "warning"))
        return False

    async def _edit(self, at: int, text: str) -> None:
        session = self._session
        old = session.path[at]
        try:
            user = await session.store.run(lambda history: history.edit(old.id, text))
            self._cut_path(at)
            session.path.append(user)
            await session.tools.answer(user)
        except StoreError as error:
            session.events.append(Notice(f"The message was not sent: {error}", "error"))

    async def _regenerate(self, at: int) -> None:
        self._cut_path(at)
        try:
            await self._session.tools.answer()
        except StoreError as error:
            self._session.events.append(Notice(f"There is no other answer: {error}", "error"))

    async def _resume(self) -> None:
        try:
            await self._session.tools.resume()
        except StoreError as error:
            self._session.events.append(Notice(f"The answer does not go on: {error}", "error"))

    def _cut_path(self, at: int) -> None:
        session = self._session
        del session.path[at:]
        kept = {record.id for record in session.path}
        session.branches = {id: branch for id, branch in session.branches.items() if id in kept}
        session.events.append(PathChanged(tuple(session.path), session.branches))

    async def show_branch_of(self, message: int) -> None:
        """Show the branch through a message of this conversation where one was last."""
        leaf = await self._session.ask(lambda history: history.switch(message))
        if leaf is not None:
            await self._show_path(leaf, message)

    async def _delete(self, message: int) -> None:
        session = self._session
        deleted = await session.ask(lambda history: history.delete_message(message))
        if deleted is None:
            return
        self._deleted.append(deleted)
        shown = await session.ask(lambda history: history.conversation(deleted.conversation))
        if shown is not None:
            await self._show_path(shown.active_leaf, None)
            count = plural(deleted.messages, "message")
            session.events.append(Notice(f"{count} deleted; undo brings back what was deleted."))

    async def _undo(self, conversation: int) -> None:
        session = self._session
        last = next(deleted for deleted in reversed(self._deleted) if deleted.conversation == conversation)
        self._deleted.remove(last)
        await session.ask(lambda history: history.restore_message(last))
        await self._show_path(last.leaf_before, last.message)

    async def _show_path(self, leaf: int | None, seen: int | None) -> None:
        session = self._session
        if await session.opened.load_path(leaf):
            session.events.append(PathChanged(tuple(session.path), session.branches, seen))
