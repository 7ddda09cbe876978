"""The runtime as a process of its own: `python -m dsv4chat.runtime.child --fd N --log FILE`.

It serves the messages of runtime/protocol.py over the inherited socket N. One thread reads requests, so that
`Stop` and `Ping` are heard during a turn; the main thread loads and generates. When the socket closes,
whatever the reason, the process ends at once: an app that was killed leaves nothing behind.

Standard output and error are FILE. A flood of output moves it to FILE.1 and starts it again. The parts:
child_log.py (that), child_progress.py (of a load), child_caches.py (caches of conversations),
child_errors.py (sentences for errors nobody foresaw), child_lifetime.py (no longer than the app's).

Threads: it computes with one a physical core, unless OMP_NUM_THREADS or --threads say otherwise, at a
slightly lower priority than the app's, so that the screen stays fluent on a machine with few cores.
"""

import argparse
import contextlib
import faulthandler
import os
import queue
import socket
import threading
import time
import traceback
from typing import TYPE_CHECKING, NoReturn

import msgspec

from dsv4chat.runtime.child_caches import answer
from dsv4chat.runtime.child_errors import OUT_OF_MEMORY, unexpected
from dsv4chat.runtime.child_lifetime import end_with_the_parent
from dsv4chat.runtime.child_log import keep_bounded, never_in_the_way, note
from dsv4chat.runtime.child_progress import LoadingProgress
from dsv4chat.runtime.errors import EngineError
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
    Shutdown,
    Stop,
    Token,
    frame,
    read_request,
)
from dsv4chat.runtime.protocol_conversations import CacheRequest
from dsv4chat.runtime.threads import decide_threads

if TYPE_CHECKING:
    from dsv4chat.runtime.engine import Engine

NICENESS = 2

Work = Load | Generate | Drop | CacheRequest


class Server:
    """One connection. Requests come in through a reader thread; `run` does the work in the caller's."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._work: queue.SimpleQueue[Work] = queue.SimpleQueue()
        # Turns asked to stop, also ones still waiting; a turn's number is used once.
        self._stopped: set[int] = set()
        self._engine: Engine | None = None
        # When the request in work last showed a sign of life; None between requests.
        self._moved: float | None = None

    def run(self) -> None:
        """Serve until the process ends."""
        self._send(Hello(version=PROTOCOL_VERSION, pid=os.getpid()))
        threading.Thread(target=self._read, name="requests", daemon=True).start()
        while True:
            request = self._work.get()
            self._moved = time.monotonic()
            self._do(request)
            self._moved = None

    def _read(self) -> None:
        """Take in requests until the other side is gone or asks for the end; then end the process."""
        try:
            with self._connection.makefile("rb") as stream:
                while True:
                    header = stream.read(4)
                    size = int.from_bytes(header, "little")
                    body = stream.read(size) if len(header) == 4 and size <= MAX_FRAME_BYTES else b""
                    if not body or len(body) < size:
                        _end("the connection closed" if not header else "a request was cut off or too long")
                    self._take(read_request(body))
        except msgspec.DecodeError as error:
            self._send(Failed(kind="ProtocolError", message=f"A request was not valid: {error}."))
            _end(f"a request was not valid ({error})")
        except OSError as error:
            _end(f"the connection broke ({error})")

    def _take(self, request: Request) -> None:
        if isinstance(request, Ping):
            moved = self._moved
            busy = None if moved is None else (time.monotonic() - moved) * 1000
            self._send(Pong(number=request.number, busy_ms=busy))
        elif isinstance(request, Stop):
            self._stopped.add(request.turn)
        elif isinstance(request, Shutdown):
            _end("asked to")
        else:
            self._work.put(request)

    def _do(self, request: Work) -> None:
        """One request. Whatever goes wrong is answered with a sentence, never with silence."""
        turn = request.turn if isinstance(request, Generate) else None
        number = request.number if isinstance(request, CacheRequest) else None
        try:
            if isinstance(request, Load):
                self._load(request)
            elif isinstance(request, Generate):
                self._generate(request)
            elif isinstance(request, CacheRequest):
                self._send(answer(self._loaded(), request))
            elif self._engine is not None:
                self._engine.drop(request.conversation)
        except EngineError as error:
            note(f"{type(error).__name__}: {error}")
            self._send(Failed(turn=turn, number=number, kind=type(error).__name__, message=str(error)))
        except MemoryError:
            traceback.print_exc()
            self._send(Failed(turn=turn, number=number, kind="MemoryError", message=OUT_OF_MEMORY))
        except Exception as error:
            traceback.print_exc()
            name = type(error).__name__
            self._send(Failed(turn=turn, number=number, kind=name, message=unexpected(error)))
        finally:
            if turn is not None:
                self._stopped.discard(turn)

    def _load(self, request: Load) -> None:
        self._send(Loading(stage="Starting the runtime"))
        from dsv4chat.runtime.engine import Engine  # here, because importing torch takes a second or more

        # The old model goes first: two may not fit.
        self._engine = None
        progress = LoadingProgress(self._send)
        engine = Engine.load(
            request.model,
            device=request.device,
            dtype=request.dtype,
            kv_dtype=request.kv_dtype,
            max_context=request.max_context,
            progress=progress,
            cache_memory=request.cache_memory,
            cache_folder=request.cache_folder,
            cache_disk=request.cache_disk,
            kernels=request.kernels,
            say=lambda sentence: self._send(Loading(stage=sentence)),
        )
        progress.last()
        self._engine = engine
        config, info = engine.config, engine.info
        self._send(
            Ready(
                model=info.model,
                path=str(info.path),
                layers=config.num_layers,
                layer_kinds=list(config.layer_kinds),
                hidden_size=config.hidden_size,
                vocab_size=config.vocab_size,
                parameters=info.parameters,
                weight_bytes=info.weight_bytes,
                device=info.device,
                dtype=info.dtype,
                kv_dtype=info.kv_dtype,
                max_context=info.max_context,
                has_tokenizer=engine.tokenizer is not None,
                load_seconds=info.load_seconds,
            )
        )

    def _loaded(self) -> "Engine":
        if self._engine is None:
            raise EngineError("No model is loaded yet; load one first.")
        return self._engine

    def _generate(self, request: Generate) -> None:
        engine, turn = self._loaded(), request.turn
        tokens = engine.generate(
            request.ids,
            request.sampling,
            conversation=request.conversation,
            boundaries=request.boundaries,
            alternatives=request.alternatives,
            should_stop=lambda: turn in self._stopped,
            on_prefill=lambda done, total, reused: self._send(
                Prefill(turn=turn, done=done, total=total, reused=reused)
            ),
        )
        for token in tokens:
            self._send(
                Token(
                    turn=turn,
                    id=token.id,
                    text=token.text,
                    logprob=token.logprob,
                    milliseconds=token.milliseconds,
                    residual=token.residual,
                    alternatives=token.alternatives,
                )
            )
        report = engine.last_turn
        self._send(
            Finished(
                turn=turn,
                reason=report.reason,
                prefilled=report.prefilled,
                reused=report.reused,
                tokens=report.tokens,
                ttft_ms=report.ttft_ms,
                prefill_ms=report.prefill_ms,
                first_decode_ms=report.first_decode_ms,
                tokens_per_second=report.tokens_per_second,
                stop_id=report.stop_id,
                tail=report.tail,
                restored=report.restored,
                room=report.room,
                notices=report.notices,
            )
        )

    def _send(self, reply: Reply) -> None:
        if self._moved is not None and not isinstance(reply, Pong):
            self._moved = time.monotonic()
        try:
            with self._sending:
                self._connection.sendall(frame(reply))
        except OSError as error:
            _end(f"the connection broke ({error})")


def _end(cause: str) -> NoReturn:
    """End the process now, from any thread, in the middle of anything."""
    note(f"ends: {cause}")
    os._exit(0)


def main() -> None:
    """Serve the connection named on the command line."""
    parser = argparse.ArgumentParser(prog="dsv4chat.runtime.child", description=__doc__.splitlines()[0])
    parser.add_argument("--fd", type=int, required=True, help="the inherited socket")
    parser.add_argument("--log", help="the file that standard output and error are, if it has a name")
    parser.add_argument("--threads", type=int, help="threads to compute with")
    options = parser.parse_args()
    never_in_the_way()
    end_with_the_parent()
    faulthandler.enable()
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    threads = decide_threads(options.threads)
    keep_bounded(options.log)
    note(f"dsv4chat runtime, protocol {PROTOCOL_VERSION}, process {os.getpid()}, {threads} threads")
    Server(socket.socket(fileno=options.fd)).run()


if __name__ == "__main__":
    main()
