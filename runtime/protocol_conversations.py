"""Messages about the caches of conversations: saved, brought back, measured. Part of runtime/protocol.py."""

import msgspec


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=True):
    """Base of every message; the class name is the tag."""


class Save(Message, frozen=True, kw_only=True):
    """Write what is new in a conversation's cache to the cache folder. Answered by `Saved` or `Failed`."""

    number: int
    conversation: str


class Resume(Message, frozen=True, kw_only=True):
    """Bring a conversation's saved cache back, ahead of its next turn. Answered by `Resumed` or `Failed`."""

    number: int
    conversation: str


class Measure(Message, frozen=True, kw_only=True):
    """How much of a turn's prompt would be reused. Answered by `Measured` or `Failed`."""

    number: int
    conversation: str
    ids: list[int]


class Stats(Message, frozen=True, kw_only=True):
    """Where the caches of all conversations are. Answered by `Figures` or `Failed`."""

    number: int


class Saved(Message, frozen=True, kw_only=True):
    """What a save wrote; nothing when all was on disk already."""

    number: int
    files: int
    bytes: int
    seconds: float


class Resumed(Message, frozen=True, kw_only=True):
    """What is warm after a resume. tokens: ids, 0 if nothing could be used; notices: sentences why."""

    number: int
    tokens: int
    bytes: int
    seconds: float
    notices: list[str] = []


class Measured(Message, frozen=True, kw_only=True):
    """How many of the ids would not have to be fed."""

    number: int
    reused: int


class ConversationCache(msgspec.Struct, frozen=True, kw_only=True):
    """Where one conversation's cache is, in bytes: with the model, in host memory, on disk.

    tokens: of the path in use; branches: stretches without a fork.
    """

    conversation: str
    tokens: int
    branches: int
    live_bytes: int
    memory_bytes: int
    disk_bytes: int


class Figures(Message, frozen=True, kw_only=True):
    """The caches of the conversations used so far, the last used one first."""

    number: int
    conversations: list[ConversationCache]


CacheRequest = Save | Resume | Measure | Stats
CacheAnswer = Saved | Resumed | Measured | Figures
