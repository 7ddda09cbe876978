"""What the child answers about the caches of conversations: saves them, brings them back, measures them."""

from typing import TYPE_CHECKING

from dsv4chat.runtime.protocol_conversations import (
    CacheAnswer,
    CacheRequest,
    ConversationCache,
    Figures,
    Measure,
    Measured,
    Resume,
    Resumed,
    Save,
    Saved,
)

if TYPE_CHECKING:
    from dsv4chat.runtime.engine import Engine


def answer(engine: "Engine", request: CacheRequest) -> CacheAnswer:
    """Do what is asked. Raises EngineError with a sentence."""
    number = request.number
    if isinstance(request, Save):
        saved = engine.save(request.conversation)
        return Saved(number=number, files=saved.files, bytes=saved.bytes, seconds=saved.seconds)
    if isinstance(request, Resume):
        back = engine.resume(request.conversation)
        return Resumed(
            number=number,
            tokens=back.tokens,
            bytes=back.bytes,
            seconds=back.seconds,
            notices=back.notices,
        )
    if isinstance(request, Measure):
        return Measured(number=number, reused=engine.reusable(request.ids, request.conversation))
    return Figures(
        number=number,
        conversations=[
            ConversationCache(
                conversation=figures.conversation,
                tokens=figures.tokens,
                branches=figures.branches,
                live_bytes=figures.live_bytes,
                memory_bytes=figures.memory_bytes,
                disk_bytes=figures.disk_bytes,
            )
            for figures in engine.stats()
        ],
    )
