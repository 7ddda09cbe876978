"""The app's client of the runtime's process: its answers, and every way in which it can end."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
import pytest_asyncio

from dsv4chat.engine_process import EngineDied, EngineFailed, EngineProcess
from dsv4chat.runtime.protocol import Finished, Load, Loading, Prefill, Ready, SamplingParams, Token
from tests.support.engines import save_random
from tests.support.peer import PEER

# One loop for all, so that tests which leave the engine as they found it can share one.
pytestmark = pytest.mark.asyncio(loop_scope="module")

ENDLESS = SamplingParams(seed=1, ignore_eos=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_random(tmp_path_factory.mktemp("model"), text=True)


@pytest_asyncio.fixture(loop_scope="module")
async def engine(tmp_path):
    """A child of the test's own, without a model."""
    async with EngineProcess(log_folder=tmp_path / "logs", threads=1) as engine:
        yield engine


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(folder, tmp_path_factory):
    """A child with a model that a test must leave alive."""
    async with EngineProcess(log_folder=tmp_path_factory.mktemp("logs"), threads=1) as engine:
        engine.loading = await load(engine, folder)
        yield engine


async def load(engine, folder):
    items = [item async for item in engine.load(Load(model=str(folder), max_context=600))]
    assert isinstance(items[-1], Ready)
    return items


def running(pid):
    """Whether a process is there and not a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


async def gone(pid, seconds):
    deadline = time.monotonic() + seconds
    while running(pid) and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    return not running(pid)


needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")


async def test_a_model_is_loaded_and_turns_are_generated(shared):
    engine = shared
    *progress, ready = engine.loading
    assert all(isinstance(item, Loading) for item in progress)
    assert engine.ready == ready
    some = SamplingParams(seed=1, max_tokens=4, ignore_eos=True)
    items = [item async for item in engine.generate([0, 1, 2], some, alternatives=2)]
    assert [type(item) for item in items] == [Prefill] * 4 + [Token] * 4 + [Finished]
    assert all(len(item.alternatives) == 2 for item in items if isinstance(item, Token))
    again = [item async for item in engine.generate([0, 1, 2], some)]
    assert again[-1].reused == 2
    engine.drop("default")
    cold = [item async for item in engine.generate([0, 1, 2], some)]
    assert cold[-1].reused == 0
    assert [i.id for i in items if isinstance(i, Token)] == [i.id for i in cold if isinstance(i, Token)]


async def test_failures_leave_the_engine_alive(engine, folder, tmp_path):
    with pytest.raises(EngineFailed, match="There is no folder") as failed:
        await load(engine, tmp_path / "nothing")
    assert failed.value.kind == "ConfigError"
    await load(engine, folder)
    with pytest.raises(EngineFailed, match="601 tokens") as failed:
        [item async for item in engine.generate([1] * 601)]
    assert failed.value.kind == "ContextOverflowError"
    assert engine.alive
    some = SamplingParams(max_tokens=1)
    assert [item async for item in engine.generate([1], some)][-1].reason in ("length", "stop")


async def test_stop_and_ping_during_a_turn(shared):
    engine = shared
    count = 0
    async for item in engine.generate([0], ENDLESS):
        count += isinstance(item, Token)
        if isinstance(item, Token) and count == 3:
            assert await engine.ping() < 5000
            engine.stop()
    assert item.reason == "stopped"
    assert item.tokens == count


async def test_a_turn_left_early_is_stopped_and_the_next_one_works(shared):
    engine = shared
    turn = engine.generate([0], ENDLESS)
    async for item in turn:
        if isinstance(item, Token):
            break
    await turn.aclose()
    items = [item async for item in engine.generate([0, 4], SamplingParams(max_tokens=2, ignore_eos=True))]
    assert [type(item) for item in items][-3:] == [Token, Token, Finished]


async def test_a_cancelled_turn_is_stopped(shared):
    engine = shared

    async def endless():
        async for _ in engine.generate([0], ENDLESS):
            pass

    task = asyncio.create_task(endless())
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    some = SamplingParams(max_tokens=2, ignore_eos=True)
    assert [item async for item in engine.generate([0, 4], some)][-1].tokens == 2


async def test_a_killed_child_is_noticed_at_once_in_the_middle_of_a_turn(engine, folder):
    await load(engine, folder)
    turn = engine.generate([0], ENDLESS)
    while not isinstance(await anext(turn), Token):
        pass
    os.kill(engine.pid, signal.SIGKILL)
    killed = time.monotonic()
    with pytest.raises(EngineDied) as died:
        [item async for item in turn]
    assert time.monotonic() - killed < 2
    assert "SIGKILL" in str(died.value)
    assert str(engine.log_path) in str(died.value)
    assert any("dsv4chat runtime" in line for line in died.value.last_lines)
    assert not engine.alive
    with pytest.raises(EngineDied):
        [item async for item in engine.generate([0], ENDLESS)]
    with pytest.raises(EngineDied):
        await engine.ping()


async def test_a_child_that_dies_while_loading_is_noticed(engine, folder):
    items = engine.load(Load(model=str(folder)))
    await anext(items)
    os.kill(engine.pid, signal.SIGTERM)
    with pytest.raises(EngineDied, match="SIGTERM"):
        async for _ in items:
            pass


@needs_proc
async def test_close_ends_the_child_even_if_it_does_not_listen(tmp_path, folder):
    engine = EngineProcess(log_folder=tmp_path, threads=1)
    await engine.start()
    pid = engine.pid
    await engine.close()
    assert await gone(pid, 1)
    await engine.close()  # a second time does nothing
    code = PEER + textwrap.dedent(
        """
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        from dsv4chat.runtime.protocol import PROTOCOL_VERSION, Hello, frame
        peer.sendall(frame(Hello(version=PROTOCOL_VERSION, pid=1)))
        while True:
            time.sleep(60)
        """
    )
    deaf = EngineProcess(log_folder=tmp_path, command=[sys.executable, "-c", code])
    await deaf.start()
    pid = deaf.pid
    await deaf.close()
    assert await gone(pid, 1)


@needs_proc
async def test_calls_that_wait_when_it_is_closed_end(engine, folder):
    await load(engine, folder)

    async def endless():
        async for _ in engine.generate([0], ENDLESS):
            pass

    task = asyncio.create_task(endless())
    await asyncio.sleep(0.2)
    await engine.close()
    with pytest.raises(EngineDied, match="closed"):
        await task


@needs_proc
async def test_an_app_that_is_killed_leaves_no_child(tmp_path, folder):
    code = f"""
import asyncio
from pathlib import Path
from dsv4chat.engine_process import EngineProcess
from dsv4chat.runtime.protocol import Load, SamplingParams, Token

async def main():
    engine = EngineProcess(log_folder=Path({str(tmp_path)!r}), threads=1)
    await engine.start()
    async for _ in engine.load(Load(model={str(folder)!r})):
        pass
    async for item in engine.generate([0], SamplingParams(seed=1, ignore_eos=True)):
        if isinstance(item, Token):
            print(engine.pid, flush=True)

asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as app:
        child = int(app.stdout.readline())
        assert running(child)
        app.kill()
        assert await gone(child, 2)
