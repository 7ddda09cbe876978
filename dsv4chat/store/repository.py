"""The history behind one connection: everything that can be asked of it, put together from its parts."""

from contextlib import suppress

from dsv4chat.store.answers import Answers
from dsv4chat.store.approvals import Approvals
from dsv4chat.store.conversations import Conversations
from dsv4chat.store.errors import StoreError
from dsv4chat.store.messages import Messages
from dsv4chat.store.prompts import Prompts
from dsv4chat.store.searching import Searches
from dsv4chat.store.transfers import Transfers


class Repository(Conversations, Messages, Answers, Searches, Approvals, Prompts, Transfers):
    """The history. `dsv4chat.store` lists all methods; the module of its part says what each does."""

    def close(self) -> None:
        """Close the file; unfinished answers of this program become interrupted."""
        with suppress(StoreError):
            self.recover(own=True)
        self.instance.close()
        self.connection.close()
