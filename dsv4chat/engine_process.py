"""The app's side of the runtime's child process: start it, talk to it, notice its death. No torch, no numpy.

The child is a fresh interpreter (`python -m dsv4chat.runtime.child`) that inherits one end of a socket pair;
its standard output and error go to a log file. When this process ends in any way, the socket closes and the
child ends itself. When the child ends in any way, every waiting call here raises `EngineDied` at once.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path

import msgspec

from dsv4chat.engine_errors import EngineDied, EngineFailed
from dsv4chat.engine_process_caches import EngineCaches
from dsv4chat.engine_process_child import Process, end_child, how_it_ended, start_child
from dsv4chat.engine_process_heartbeat import BEAT_SECONDS, Hang, Heartbeat
from dsv4chat.engine_process_waiting import Waiting
from dsv4chat.logs import EngineLog, log_tail
from dsv4chat.runtime.protocol import (
    MAX_FRAME_BYTES,
    PROTOCOL_VERSION,
    Drop,
    Failed,
    Finished,
    Generate,
    Hello,
    Load,
    Loading,
    Ping,
    Pong,
    Prefill,
    Ready,
    Reply,
    Request,
    SamplingParams,
    Shutdown,
    Stop,
    Token,
    frame,
    read_reply,
)
from dsv4chat.runtime.protocol_conversations import CacheAnswer

__all__ = ["EngineDied", "EngineFailed", "EngineProcess", "Hang"]

HELLO_SECONDS = 60.0


class EngineProcess:
    """One child process with one model. All methods belong to one asyncio loop.

    caches: what can be asked about the caches of conversations. ready: the loaded model.
    """

    def __init__(
        self,
        *,
        log_folder: Path | None = None,
        threads: int | None = None,
        command: Sequence[str] | None = None,
    ) -> None:
        """`threads`: of the child, None for its default. `command`: what to start instead of the runtime."""
        self._log_folder = log_folder
        self._threads = threads
        self._command = command
        self._log: EngineLog | None = None
        self._process: Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._waiting: Waiting | None = None
        self._heartbeat = Heartbeat()
        self._tasks: list[asyncio.Task[None]] = []
        self.caches = EngineCaches(self._answer)
        self._closing = False
        self.log_path: Path = Path()
        self.ready: Ready | None = None

    @property
    def alive(self) -> bool:
        """Whether the child runs and can be talked to."""
        return self._process is not None and self._death is None and not self._closing

    @property
    def pid(self) -> int | None:
        """The child's process id, once started."""
        return self._process.pid if self._process else None

    @property
    def stalled(self) -> Hang | None:
        """How the child hangs, None while it gets on (or is gone)."""
        return self._heartbeat.hang() if self.alive else None

    async def __aenter__(self) -> "EngineProcess":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> Hello:
        """Start the child and wait for its greeting. Raises EngineDied; EngineFailed for another version."""
        if self._waiting is not None:
            raise EngineFailed("EngineError", "This engine process was started before; make a new one.")
        waiting = self._waiting = Waiting()
        log = self._log = EngineLog(self._log_folder)
        self.log_path = log.path
        try:
            self._process, ours = await start_child(log, command=self._command, threads=self._threads)
        except OSError as error:
            raise self._died(f"it could not be started ({error})") from error
        reader, self._writer = await asyncio.open_unix_connection(sock=ours)
        self._tasks.append(asyncio.create_task(self._listen(reader)))
        try:
            hello = await asyncio.wait_for(asyncio.shield(waiting.hello), HELLO_SECONDS)
        except TimeoutError:
            await self.close()
            raise self._died(f"it did not answer within {HELLO_SECONDS:.0f} s") from None
        except BaseException:
            await self.close()
            raise
        if hello.version != PROTOCOL_VERSION:
            await self.close()
            raise EngineFailed(
                "VersionMismatch",
                f"The engine speaks version {hello.version} of the protocol and this program version "
                f"{PROTOCOL_VERSION}: two installations are mixed; reinstall dsv4chat.",
            )
        self._tasks.append(asyncio.create_task(self._beat()))
        return hello

    async def load(self, request: Load | None = None) -> AsyncGenerator[Loading | Ready, None]:
        """Load a model; the last item is `Ready`. Raises EngineFailed (damaged file, ...), EngineDied."""
        queue = self._started().load()
        self._send(request or Load())
        while True:
            item = await queue.get()
            if isinstance(item, EngineDied):
                raise item
            if isinstance(item, Failed):
                raise EngineFailed(item.kind, item.message)
            if isinstance(item, Ready):
                self.ready = item
            yield item
            if isinstance(item, Ready):
                return

    async def generate(
        self,
        ids: Sequence[int],
        sampling: SamplingParams | None = None,
        *,
        conversation: str = "default",
        boundaries: Sequence[int] = (),
        alternatives: int = 0,
    ) -> AsyncGenerator[Prefill | Token | Finished, None]:
        """Continue `ids`; the last item is `Finished`. Leaving the loop early stops the turn.

        Raises EngineFailed (prompt too long, bad parameters, ...) and EngineDied.
        """
        waiting = self._started()
        turn, queue = waiting.turn()
        ended = False
        try:
            self._send(
                Generate(
                    turn=turn,
                    conversation=conversation,
                    ids=list(ids),
                    sampling=sampling or SamplingParams(),
                    boundaries=list(boundaries),
                    alternatives=alternatives,
                )
            )
            while True:
                item = await queue.get()
                ended = isinstance(item, Finished | Failed | EngineDied)
                if isinstance(item, EngineDied):
                    raise item
                if isinstance(item, Failed):
                    raise EngineFailed(item.kind, item.message)
                yield item
                if ended:
                    return
        finally:
            waiting.turns.pop(turn, None)
            if not ended and self.alive:
                self._send(Stop(turn=turn))

    def stop(self) -> None:
        """Ask every running turn to end after its current token; returns at once."""
        if self._waiting is not None and self.alive:
            for turn in list(self._waiting.turns):
                self._send(Stop(turn=turn))

    def drop(self, conversation: str) -> None:
        """Forget a conversation's cache."""
        self._send(Drop(conversation=conversation))

    async def ping(self, timeout: float = 5.0) -> float:
        """Milliseconds until the child answers, also during a turn. Raises TimeoutError, EngineDied."""
        started = time.perf_counter()
        await asyncio.wait_for(self._answer(lambda number: Ping(number=number)), timeout)
        return (time.perf_counter() - started) * 1000

    async def close(self) -> None:
        """End the child: a request, then signals. Safe to call twice, and after the child died."""
        if self._closing:
            return
        self._closing = True
        if self._writer is not None:
            if self._death is None:
                with contextlib.suppress(OSError):
                    self._writer.write(frame(Shutdown()))
            # Closing the socket ends a child that does not read its requests: it sees the end of the stream.
            self._writer.close()
        if self._process is not None:
            await end_child(self._process)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._waiting is not None:
            self._waiting.tell_everyone(self._died("it was closed"))
        if self._log is not None:
            self._log.close()

    # -- inside ----------------------------------------------------------------------------------------

    @property
    def _death(self) -> EngineDied | None:
        return self._waiting.death if self._waiting is not None else None

    def _started(self) -> Waiting:
        """Who waits for what, once started and until closed."""
        if self._waiting is None or self._writer is None or self._closing:
            raise self._death or EngineFailed(
                "EngineError", "The engine's process is not running; start it first."
            )
        return self._waiting

    async def _answer(self, request: Callable[[int], Request]) -> Pong | CacheAnswer:
        """The answer to a request that has one, whenever what was asked before it is done."""
        number, answer = self._started().question()
        try:
            self._send(request(number))
            result: Pong | CacheAnswer = await answer
            return result
        finally:
            answer.cancel()

    def _send(self, request: Request) -> None:
        waiting = self._started()
        if waiting.death is not None:
            raise waiting.death
        if self._writer is not None:
            self._writer.write(frame(request))

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        """Hand out the child's messages until its socket closes, then say how it ended."""
        broken = ""
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "little")
                if size > MAX_FRAME_BYTES:
                    broken = f"it sent a frame of {size:,} bytes"
                    break
                self._take(read_reply(await reader.readexactly(size)))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except msgspec.DecodeError as error:
            broken = f"it sent something that is no message ({error})"
        if self._closing or self._process is None or self._waiting is None:
            return
        self._waiting.tell_everyone(self._died(broken or await how_it_ended(self._process)))

    def _take(self, reply: Reply) -> None:
        self._heartbeat.heard()
        if isinstance(reply, Pong) and reply.number == 0:
            self._heartbeat.answered(reply)
        elif self._waiting is not None:
            self._waiting.dispatch(reply)

    async def _beat(self) -> None:
        """Ask the child every second whether it lives; the number 0 belongs to this."""
        while self.alive:
            if self._heartbeat.beat():
                self._send(Ping(number=0))
            await asyncio.sleep(BEAT_SECONDS)

    def _died(self, cause: str) -> EngineDied:
        return EngineDied(cause, self.log_path, log_tail(self.log_path))
