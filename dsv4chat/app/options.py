"""How the app was started: what the command line says, before any setting is read."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ChatOptions:
    """model: a folder or "demo". profile: "preview", "current" or None (the model says). cache_memory: GB.

    None elsewhere means that the settings decide.
    """

    model: str = "demo"
    profile: str | None = None
    device: str | None = None
    dtype: str | None = None
    kv_dtype: str | None = None
    kernels: str | None = None
    max_context: int | None = None
    cache_memory: float | None = None
    thinking: bool | None = None
    effort: str | None = None
