"""How much of the context is left, and what to say about it before it is full."""

from dsv4chat.app.wording import plural

NEARLY_FULL = 0.85
FORGET = "/forget leaves out the oldest turns."


class ContextRoom:
    """Warns once when a conversation comes near the end of its context, and again after it had more room."""

    def __init__(self) -> None:
        self._warned: int | None = None

    def warning(self, conversation: int | None, used: int, room: int) -> str | None:
        """The sentence to show now, if any. used, room: tokens of the conversation and of the context."""
        if not room or used < NEARLY_FULL * room:
            if self._warned == conversation:
                self._warned = None
            return None
        if self._warned == conversation:
            return None
        self._warned = conversation
        left = max(0, room - used)
        verb = "is" if left == 1 else "are"
        return f"The context is {100 * used // room} % full; {plural(left, 'token')} {verb} left. {FORGET}"


def context_full(room: int) -> str:
    """Why an answer was cut off by the context."""
    return f"The context of {room:,} tokens is full. {FORGET}"
