"""The app's side of the runtime's child process: start it, talk to it, notice its death. No torch, no numpy.

The child is a fresh interpreter (`python -m dsv4chat.runtime.child`) that inherits one end of a socket pair;
its standard output and error go to a log file. When this process ends in any way, the socket closes and the
child ends itself. When the child ends in any way, every waiting call here raises `EngineDied` at once.
"""

import asyncio
import contextlib
import fcntl
import itertools
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dsv4chat.engine_errors import EngineDied, EngineFailed, describe_exit
from dsv4chat.logs import log_tail, new_engine_log
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

__all__ = ["EngineDied", "EngineFailed", "EngineProcess"]

HELLO_SECONDS = 60.0
CLOSE_SECONDS = 2.0


class EngineProcess:
    """One child process with one model. All methods belong to one asyncio loop."""

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
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._listener: asyncio.Task[None] | None = None
        self._death: EngineDied | None = None
        self._closing = False
        self._hello: asyncio.Future[Hello] | None = None
        self._load: asyncio.Queue[Loading | Ready | Failed | EngineDied] | None = None
        self._turns: dict[int, asyncio.Queue[Prefill | Token | Finished | Failed | EngineDied]] = {}
        self._pings: dict[int, asyncio.Future[None]] = {}
        self._numbers = itertools.count(1)
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

    async def __aenter__(self) -> "EngineProcess":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> Hello:
        """Start the child and wait for its greeting. Raises EngineDied; EngineFailed for another version."""
        if self._process is not None:
            raise EngineFailed("EngineError", "This engine process was started before; make a new one.")
        self.log_path, log = new_engine_log(self._log_folder)
        ours, theirs = socket.socketpair()
        if theirs.fileno() < 3:
            # Someone closed our standard streams; the child's would take this number from it.
            theirs = socket.socket(fileno=fcntl.fcntl(theirs.detach(), fcntl.F_DUPFD_CLOEXEC, 3))
        try:
            # -P: a file in the user's folder must not stand in for a module of the same name.
            command = self._command or (sys.executable, "-P", "-m", "dsv4chat.runtime.child")
            options = ["--fd", str(theirs.fileno()), "--log", str(self.log_path)]
            if self._threads is not None:
                options += ["--threads", str(self._threads)]
            self._process = await asyncio.create_subprocess_exec(
                *command,
                *options,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(theirs.fileno(),),
                # Ctrl+C in the terminal is for the app; the child is told to stop over the socket.
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise self._died(f"it could not be started ({error})") from error
        finally:
            theirs.close()
            os.close(log)
        reader, self._writer = await asyncio.open_unix_connection(sock=ours)
        self._hello = asyncio.get_running_loop().create_future()
        self._listener = asyncio.create_task(self._listen(reader))
        try:
            hello = await asyncio.wait_for(asyncio.shield(self._hello), HELLO_SECONDS)
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
        return hello

    async def load(self, request: Load | None = None) -> AsyncGenerator[Loading | Ready, None]:
        """Load a model; the last item is `Ready`. Raises EngineFailed (damaged file, ...), EngineDied."""
        self._load = asyncio.Queue()
        self._send(request or Load())
        while True:
            item = await self._load.get()
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
        turn = next(self._numbers)
        queue: asyncio.Queue[Prefill | Token | Finished | Failed | EngineDied] = asyncio.Queue()
        self._turns[turn] = queue
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
            self._turns.pop(turn, None)
            if not ended and self.alive:
                self._send(Stop(turn=turn))

    def stop(self) -> None:
        """Ask every running turn to end after its current token; returns at once."""
        for turn in list(self._turns):
            if self.alive:
                self._send(Stop(turn=turn))

    def drop(self, conversation: str) -> None:
        """Forget a conversation's cache."""
        self._send(Drop(conversation=conversation))

    async def ping(self, timeout: float = 5.0) -> float:
        """Milliseconds until the child answers, also during a turn. Raises TimeoutError, EngineDied."""
        number = next(self._numbers)
        self._pings[number] = asyncio.get_running_loop().create_future()
        started = time.perf_counter()
        try:
            self._send(Ping(number=number))
            await asyncio.wait_for(self._pings[number], timeout)
        finally:
            self._pings.pop(number, None)
        return (time.perf_counter() - started) * 1000

    async def close(self) -> None:
        """End the child: a request, then signals. Safe to call twice, and after the child died."""
        process = self._process
        if process is None or self._closing:
            return
        self._closing = True
        if self._writer is not None and self._death is None:
            with contextlib.suppress(OSError):
                self._writer.write(frame(Shutdown()))
        if self._writer is not None:
            # Closing the socket ends a child that does not read its requests: it sees the end of the stream.
            self._writer.close()
        for end in (None, signal.SIGTERM, signal.SIGKILL):
            if end is not None:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(end)
            try:
                await asyncio.wait_for(asyncio.shield(process.wait()), CLOSE_SECONDS)
                break
            except TimeoutError:
                continue
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.gather(self._listener, return_exceptions=True)
        self._tell_everyone(self._died("it was closed"))

    def _send(self, request: Request) -> None:
        if self._death is not None:
            raise self._death
        if self._writer is None or self._closing:
            raise EngineFailed("EngineError", "The engine's process is not running; start it first.")
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
                self._dispatch(read_reply(await reader.readexactly(size)))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except msgspec.DecodeError as error:
            broken = f"it sent something that is no message ({error})"
        if self._closing:
            return
        self._tell_everyone(self._died(broken or await self._how_it_ended()))

    def _dispatch(self, reply: Reply) -> None:
        if isinstance(reply, Prefill | Token | Finished) or (
            isinstance(reply, Failed) and reply.turn is not None
        ):
            self._to_turn(reply)
        elif isinstance(reply, Loading | Ready | Failed):
            if self._load is not None:
                self._load.put_nowait(reply)
        elif isinstance(reply, Pong):
            waiting = self._pings.get(reply.number)
            if waiting is not None and not waiting.done():
                waiting.set_result(None)
        elif self._hello is not None and not self._hello.done():
            self._hello.set_result(reply)

    def _to_turn(self, reply: Prefill | Token | Finished | Failed) -> None:
        queue = None if reply.turn is None else self._turns.get(reply.turn)
        if queue is not None:  # else a turn that was left early
            queue.put_nowait(reply)

    async def _how_it_ended(self) -> str:
        process = self._process
        if process is None:
            return "it was never started"
        try:
            code = await asyncio.wait_for(asyncio.shield(process.wait()), CLOSE_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            return "it closed its connection and hung, and was killed"
        return describe_exit(code)

    def _died(self, cause: str) -> EngineDied:
        return EngineDied(cause, self.log_path, log_tail(self.log_path))

    def _tell_everyone(self, death: EngineDied) -> None:
        if self._death is None:
            self._death = death
        futures: list[asyncio.Future[Any]] = [*self._pings.values()]
        if self._hello is not None:
            futures.append(self._hello)
        for future in futures:
            if not future.done():
                future.set_exception(self._death)
                future.exception()  # a call that is no longer waited for must not be reported as unhandled
        for queue in self._turns.values():
            queue.put_nowait(self._death)
        if self._load is not None:
            self._load.put_nowait(self._death)
