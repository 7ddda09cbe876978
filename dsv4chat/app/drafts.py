"""Unsent text: kept in the history for each conversation, so that it outlives the program, however it ends.

It is written when it has changed and a second is over, when a conversation is left, and at the end. What is
in the input belongs to the conversation that was asked for last, from the key on that asked for it.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

from dsv4chat.app.widgets.composer import Composer
from dsv4chat.app.widgets.waiting_messages import WaitingMessages
from dsv4chat.store import StoreError

if TYPE_CHECKING:
    from dsv4chat.app.session import ChatSession

_LEFT = -1  # in place of a conversation: another one was asked for and is not shown yet
SECONDS = 1.0  # between two looks at whether the text has changed


class Drafts:
    """The draft of the conversation shown. `save` is to be called every `SECONDS` and before the end.

    A message that is being edited is none. Messages that wait to be sent are: they move along when another
    conversation is shown, so they count for that one then.
    """

    def __init__(self, session: "ChatSession", composer: Composer, waiting: WaitingMessages) -> None:
        self._session = session
        self._composer = composer
        self._waiting = waiting
        self._slot: int | None = _LEFT  # the conversation, None for a new one
        self._saved: str | None = None  # as the history has it; None while no conversation's draft is read
        session.leaving = self.leave

    def save(self) -> None:
        """Write the unsent text if it is another one than that written last."""
        texts = [self._waiting.text, self._composer.unsent_text]
        self._write("\n\n".join(text for text in texts if text))

    def sent(self, conversation: int) -> None:
        """A message was written to the history, which made a new conversation that one."""
        if self._slot is None:
            if self._saved is None:  # still being read, and not what was sent: it stays for the next new one
                self._saved = ""
            self._write("")
            self._slot = conversation
        self.save()

    def leave(self) -> None:
        """Another conversation was asked for: what is typed from now on is not for this one."""
        if self._saved is not None:
            self._composer.end_edit()
            self._write(self._composer.unsent_text)
            self._composer.set_text("")
            self._saved = None
        self._slot = _LEFT

    def show(self, conversation: int | None) -> None:
        """A conversation is shown: its draft comes into the input, before what was typed meanwhile."""
        if self._saved is not None and conversation == self._slot:
            return
        self.leave()
        self._slot = conversation
        self._session.begin(self._read(conversation))

    async def _read(self, conversation: int | None) -> None:
        text = await self._session.ask(lambda history: history.draft(conversation)) or ""
        if self._saved is None and conversation == self._slot:
            self._saved = text
            self._composer.bring_back(text)

    def _write(self, text: str) -> None:
        if self._saved is None or text == self._saved:
            return
        self._saved, slot = text, self._slot
        with suppress(StoreError):  # the history is closed already
            self._session.store.submit(lambda history: history.save_draft(slot, text))
