"""Who waits for what from the child: a greeting, a load, turns, pings, saves. Each reply finds its waiter."""

import asyncio
import itertools
from typing import Any

from dsv4chat.engine_errors import EngineDied, EngineFailed
from dsv4chat.runtime.protocol import Failed, Finished, Hello, Loading, Pong, Prefill, Ready, Reply, Token
from dsv4chat.runtime.protocol_conversations import CacheAnswer

LoadItem = Loading | Ready | Failed | EngineDied
TurnItem = Prefill | Token | Finished | Failed | EngineDied


class Waiting:
    """The open questions to one child. Every one of them ends: with its answer, or with the child's death."""

    def __init__(self) -> None:
        self.death: EngineDied | None = None
        self.hello: asyncio.Future[Hello] = asyncio.get_running_loop().create_future()
        self.turns: dict[int, asyncio.Queue[TurnItem]] = {}
        self._load: asyncio.Queue[LoadItem] | None = None
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)

    def load(self) -> "asyncio.Queue[LoadItem]":
        """What is told of the load that is about to be asked for."""
        self._load = asyncio.Queue()
        return self._load

    def turn(self) -> "tuple[int, asyncio.Queue[TurnItem]]":
        """A turn's number, and what is told of it until `turns` forgets it."""
        number = next(self._numbers)
        queue: asyncio.Queue[TurnItem] = asyncio.Queue()
        self.turns[number] = queue
        return number, queue

    def question(self) -> "tuple[int, asyncio.Future[Any]]":
        """The number of a request with one answer, and that answer."""
        number = next(self._numbers)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers[number] = future
        future.add_done_callback(lambda _: self._answers.pop(number, None))
        return number, future

    def dispatch(self, reply: Reply) -> None:
        """Give a reply to who waits for it; what nobody waits for any more is dropped."""
        if isinstance(reply, Failed) and reply.number is not None:
            self._settle(reply.number, EngineFailed(reply.kind, reply.message))
        elif isinstance(reply, Prefill | Token | Finished) or (
            isinstance(reply, Failed) and reply.turn is not None
        ):
            queue = None if reply.turn is None else self.turns.get(reply.turn)
            if queue is not None:
                queue.put_nowait(reply)
        elif isinstance(reply, Loading | Ready | Failed):
            if self._load is not None:
                self._load.put_nowait(reply)
        elif isinstance(reply, Hello):
            if not self.hello.done():
                self.hello.set_result(reply)
        else:
            self._settle(reply.number, reply)

    def _settle(self, number: int, answer: Pong | CacheAnswer | EngineFailed) -> None:
        future = self._answers.get(number)
        if future is None or future.done():
            return
        if isinstance(answer, EngineFailed):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    def tell_everyone(self, death: EngineDied) -> None:
        """The child is gone: end every wait with that."""
        self.death = self.death or death
        for future in (self.hello, *list(self._answers.values())):
            if not future.done():
                future.set_exception(self.death)
                future.exception()  # a call that is no longer waited for must not be reported as unhandled
        for queue in self.turns.values():
            queue.put_nowait(self.death)
        if self._load is not None:
            self._load.put_nowait(self.death)
