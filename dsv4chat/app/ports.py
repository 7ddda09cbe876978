"""What the app needs of an engine: the child process is one, a scripted one in tests another."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path
from typing import Protocol

from dsv4chat.engine_process_heartbeat import Hang
from dsv4chat.runtime.protocol import Finished, Hello, Load, Loading, Prefill, Ready, SamplingParams, Token
from dsv4chat.runtime.protocol_conversations import ConversationCache, Resumed, Saved


class Caches(Protocol):
    """What can be asked about the caches of conversations; `EngineCaches` says what each method does."""

    async def save(self, conversation: str) -> Saved: ...

    async def resume(self, conversation: str) -> Resumed: ...

    async def measure(self, conversation: str, ids: Sequence[int]) -> int: ...

    async def list(self) -> Sequence[ConversationCache]: ...


class Engine(Protocol):
    """One engine with one model; `dsv4chat.engine_process.EngineProcess` says what each method does."""

    log_path: Path

    @property
    def caches(self) -> Caches: ...

    @property
    def alive(self) -> bool: ...

    @property
    def stalled(self) -> Hang | None: ...

    async def start(self) -> Hello: ...

    def load(self, request: Load | None = None) -> AsyncIterator[Loading | Ready]: ...

    def generate(
        self,
        ids: Sequence[int],
        sampling: SamplingParams,
        *,
        conversation: str = "default",
        boundaries: Sequence[int] = (),
        alternatives: int = 0,
    ) -> AsyncGenerator[Prefill | Token | Finished, None]: ...

    def stop(self) -> None: ...

    def drop(self, conversation: str) -> None: ...

    async def ping(self, timeout: float = 5.0) -> float: ...

    async def close(self) -> None: ...
