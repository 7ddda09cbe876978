"""The tokens of an answer of the open conversation, from the history."""

from typing import TYPE_CHECKING

from dsv4chat.app.token_cells import TokenCell, stored_cells, why_not
from dsv4chat.store import MessageRecord

if TYPE_CHECKING:
    from dsv4chat.app.session import ChatSession


async def cells_of(session: "ChatSession", record: MessageRecord) -> list[TokenCell] | str:
    """The tokens, also those of an answer that is being written as far as they are saved; or why not."""
    text = session.link.text
    reason = why_not(record, text.fingerprint if text else None)
    if reason is not None or text is None:
        return reason or ""
    figures = await session.ask(lambda history: history.figures(record.id))
    if figures is None or not len(figures):
        return "No figures of this answer's tokens are in the history."
    return stored_cells(figures, text.tokenizer)
