"""What a change of a conversation's settings costs: how much of it the next turn reads again."""

import asyncio
from typing import TYPE_CHECKING

from dsv4chat.app.prompts import read_again
from dsv4chat.app.wording import plural
from dsv4chat.store import ConversationSettings

if TYPE_CHECKING:
    from dsv4chat.app.session import ChatSession


async def cost_of_change(
    session: "ChatSession", before: ConversationSettings, after: ConversationSettings
) -> str | None:
    """A sentence for the person; None if the engine's cache serves the next turn as well as before."""
    text, record = session.link.text, session.record
    if text is None or record is None or not session.path:
        return None
    if session.answers.fed_conversation != record.id:
        return None
    cost = await asyncio.to_thread(
        read_again,
        tuple(session.path),
        before,
        after,
        session.answers.fed,
        text.tokenizer,
        text.fingerprint,
        text.profile,
    )
    if not cost:
        return None
    return f"With this change the next turn reads {plural(cost, 'token')} of the conversation again."
