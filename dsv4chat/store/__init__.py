"""The history: conversations as trees of messages in one SQLite file, private, shared by running programs."""

from dsv4chat.store.background import BackgroundStore
from dsv4chat.store.errors import StoreDamaged, StoreError, StoreMissing, StoreNewer, StoreUnwritable
from dsv4chat.store.figures import TokenFigures
from dsv4chat.store.opening import open_history, open_in_memory
from dsv4chat.store.records import (
    ConversationRecord,
    ConversationSettings,
    ConversationSummary,
    Found,
    GenerationRecord,
    MessageRecord,
)
from dsv4chat.store.repository import Repository

__all__ = [
    "BackgroundStore",
    "ConversationRecord",
    "ConversationSettings",
    "ConversationSummary",
    "Found",
    "GenerationRecord",
    "MessageRecord",
    "Repository",
    "StoreDamaged",
    "StoreError",
    "StoreMissing",
    "StoreNewer",
    "StoreUnwritable",
    "TokenFigures",
    "open_history",
    "open_in_memory",
]
