"""What a change of a conversation's settings costs: how much of it the next turn reads again.

The engine is asked, because it keeps what was read under earlier settings too: switching back may cost
nothing.
"""

import asyncio
from typing import TYPE_CHECKING

from dsv4chat.app.prompts import next_ids
from dsv4chat.app.wording import plural
from dsv4chat.encoding import EncodingError
from dsv4chat.engine_process import EngineDied, EngineFailed
from dsv4chat.store import ConversationSettings

if TYPE_CHECKING:
    from dsv4chat.app.session import ChatSession


async def cost_of_change(
    session: "ChatSession", before: ConversationSettings, after: ConversationSettings
) -> str | None:
    """A sentence for the person; None if the engine's cache serves the next turn as well as before."""
    text, engine, record = session.link.text, session.link.engine, session.record
    if text is None or engine is None or session.link.state != "ready" or record is None or not session.path:
        return None
    path = tuple(session.path)
    reused, length = [], 0
    try:
        for settings in (before, after):
            ids = await asyncio.to_thread(
                next_ids, path, settings, text.tokenizer, text.fingerprint, text.profile
            )
            length = len(ids)
            reused.append(await engine.caches.measure(str(record.id), ids))
    except (EngineDied, EngineFailed, EncodingError):
        return None  # a prompt that does not fit, say: the next turn will tell
    if reused[1] >= reused[0]:
        return None
    cost = plural(length - reused[1], "token")
    return f"With this change the next turn reads {cost} of the conversation again."
