"""What can be asked of a child about the caches of conversations. Each answer waits for the running turn."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from dsv4chat.engine_errors import EngineFailed
from dsv4chat.runtime.protocol import Pong, Request
from dsv4chat.runtime.protocol_conversations import (
    CacheAnswer,
    ConversationCache,
    Figures,
    Measure,
    Measured,
    Resume,
    Resumed,
    Save,
    Saved,
    Stats,
)

T = TypeVar("T")


class EngineCaches:
    """Every method raises EngineFailed (it could not be done, with a sentence) and EngineDied."""

    def __init__(self, ask: Callable[[Callable[[int], Request]], Awaitable[Pong | CacheAnswer]]) -> None:
        self._ask = ask

    async def save(self, conversation: str) -> Saved:
        """Write what is new in a conversation's cache to disk."""
        answer = await self._ask(lambda number: Save(number=number, conversation=conversation))
        return _checked(answer, Saved)

    async def resume(self, conversation: str) -> Resumed:
        """Bring a conversation's saved cache back, ahead of its next turn."""
        answer = await self._ask(lambda number: Resume(number=number, conversation=conversation))
        return _checked(answer, Resumed)

    async def measure(self, conversation: str, ids: Sequence[int]) -> int:
        """How many of a turn's `ids` would not have to be fed."""
        given = list(ids)
        answer = await self._ask(lambda number: Measure(number=number, conversation=conversation, ids=given))
        return _checked(answer, Measured).reused

    async def list(self) -> "list[ConversationCache]":
        """Where the caches of the conversations used so far are, the last used one first."""
        return _checked(await self._ask(lambda number: Stats(number=number)), Figures).conversations


def _checked(answer: Pong | CacheAnswer, kind: type[T]) -> T:
    if not isinstance(answer, kind):
        raise EngineFailed("ProtocolError", f"The engine answered with {type(answer).__name__}; restart it.")
    return answer
