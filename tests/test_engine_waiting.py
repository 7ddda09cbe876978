"""Replies of the child and who waits for them: what comes too late or for nobody is dropped."""

import asyncio
from pathlib import Path

import pytest

from dsv4chat.engine_errors import EngineDied, EngineFailed
from dsv4chat.engine_process_waiting import Waiting
from dsv4chat.runtime.protocol import Failed, Hello, Loading, Pong, Prefill


async def test_each_reply_finds_its_waiter_and_no_other():
    waiting = Waiting()
    number, answer = waiting.question()
    turn, told = waiting.turn()
    loading = waiting.load()
    waiting.dispatch(Pong(number=number, busy_ms=1.5))
    waiting.dispatch(Prefill(turn=turn, done=3, total=9, reused=2))
    waiting.dispatch(Loading(stage="reading"))
    waiting.dispatch(Failed(kind="CheckpointError", message="no such file"))
    assert await answer == Pong(number=number, busy_ms=1.5)
    assert told.get_nowait() == Prefill(turn=turn, done=3, total=9, reused=2)
    assert [type(loading.get_nowait()) for _ in range(2)] == [Loading, Failed]
    assert told.empty()


async def test_a_failed_request_fails_for_who_asked():
    waiting = Waiting()
    number, answer = waiting.question()
    waiting.dispatch(Failed(kind="CacheError", message="The disk is full.", number=number))
    with pytest.raises(EngineFailed, match="The disk is full"):
        await answer


async def test_what_nobody_waits_for_any_more_is_dropped():
    waiting = Waiting()
    waiting.dispatch(Loading(stage="reading"))
    waiting.dispatch(Prefill(turn=17, done=1, total=1, reused=0))
    waiting.dispatch(Pong(number=17))
    waiting.dispatch(Hello(version=1, pid=2))
    waiting.dispatch(Hello(version=1, pid=3))
    assert (await waiting.hello).pid == 2
    number, answer = waiting.question()
    answer.cancel()
    waiting.dispatch(Pong(number=number))
    assert answer.cancelled()


async def test_a_death_ends_every_wait_and_the_first_reason_stays():
    waiting = Waiting()
    _, answer = waiting.question()
    _, told = waiting.turn()
    loading = waiting.load()
    first = EngineDied("it was killed", Path("log"))
    waiting.tell_everyone(first)
    waiting.tell_everyone(EngineDied("it closed its socket", Path("log")))
    for future in (answer, waiting.hello):
        with pytest.raises(EngineDied, match="it was killed"):
            await asyncio.wait_for(future, 1)
    assert told.get_nowait() is first
    assert loading.get_nowait() is first
