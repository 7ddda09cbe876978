"""Leaving out the oldest turns of a conversation, so that it fits into the context again.

They stay in the history and on the screen. What remains stands at other positions, so the next turn reads it
anew; how much that is, is said at once.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dsv4chat.app.prompts import first_of
from dsv4chat.app.wording import plural
from dsv4chat.store import MessageRecord

if TYPE_CHECKING:
    from dsv4chat.app.session import ChatSession


def forget(session: "ChatSession", turns: int | None = None) -> str:
    """Leave out the `turns` oldest turns that are still in the prompt; None: half of them, 0: none at all.

    The newest turn always stays. Returns the sentence to show.
    """
    path, start = session.path, session.settings.start
    if turns == 0:
        if not first_of(path, start):
            return "Nothing of this conversation is left out."
        session.set_settings(replace(session.settings, start=None))
        return "The whole conversation is sent again."
    begins = questions(path[first_of(path, start) :])
    if len(begins) < 2:
        return "There is only one turn, and that one stays."
    dropped = min(len(begins) // 2 if turns is None else turns, len(begins) - 1)
    session.set_settings(replace(session.settings, start=begins[dropped].id))
    which = "The oldest turn is" if dropped == 1 else f"The oldest {plural(dropped, 'turn')} are"
    return f"{which} left out from now on but can still be read; /forget 0 brings back all."


def questions(path: Sequence[MessageRecord]) -> list[MessageRecord]:
    """The messages that begin a turn."""
    return [record for record in path if record.role == "user"]
