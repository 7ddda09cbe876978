"""An answer in the open conversation that another window is writing: waited for, then read."""

from typing import TYPE_CHECKING

from dsv4chat.app.events import PathChanged
from dsv4chat.store import MessageRecord, Repository, StoreError

if TYPE_CHECKING:
    from dsv4chat.app.session import ChatSession


class WrittenElsewhere:
    """A message sent meanwhile would stand below that answer without the model having read it."""

    def __init__(self, session: "ChatSession") -> None:
        self._session = session

    @property
    def writing(self) -> bool:
        """Whether the last message of the path is such an answer."""
        session = self._session
        return not session.busy and bool(session.path) and session.path[-1].state == "writing"

    async def look(self) -> None:
        """Show how it ended, once it has, be it with the other window."""
        if not self.writing:
            return
        session, shown = self._session, self._session.path[-1]

        def read(history: Repository) -> MessageRecord:
            history.recover()
            return history.message(shown.id)

        try:
            now = await session.store.run(read)
        except StoreError:
            return  # asked again in a second
        if now.state == "writing" or not self.writing or session.path[-1].id != shown.id:
            return
        if await session.opened.load_path(now.id):
            session.events.append(PathChanged(tuple(session.path), session.branches))
