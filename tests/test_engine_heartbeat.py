"""Whether the engine's process lives, and what its client says when it does not."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from dsv4chat import engine_process
from dsv4chat.engine_process import EngineProcess
from dsv4chat.engine_process_heartbeat import SILENT_BEATS, STUCK_SECONDS, Heartbeat
from dsv4chat.runtime.protocol import Pong
from tests.support.killing import alive


async def until(predicate, seconds=20.0):
    end = time.monotonic() + seconds
    while not predicate():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


async def test_a_stopped_child_is_noticed_and_so_is_its_recovery(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_process, "BEAT_SECONDS", 0.1)
    async with EngineProcess(log_folder=tmp_path, threads=1) as engine:
        await asyncio.sleep(1.0)
        assert engine.stalled is None
        os.kill(engine.pid, signal.SIGSTOP)
        await until(lambda: engine.stalled)
        assert not engine.stalled.answers
        os.kill(engine.pid, signal.SIGCONT)
        await until(lambda: engine.stalled is None)
        await engine.ping()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody can end a stopped process but a person")
async def test_a_child_that_hangs_does_not_outlive_an_app_that_is_killed(tmp_path):
    code = textwrap.dedent(
        f"""
        import asyncio, os, signal
        from pathlib import Path
        from dsv4chat.engine_process import EngineProcess

        async def main():
            engine = EngineProcess(log_folder=Path({str(tmp_path)!r}), threads=1)
            await engine.start()
            await engine.ping()
            os.kill(engine.pid, signal.SIGSTOP)
            print(engine.pid, flush=True)
            await asyncio.sleep(60)

        asyncio.run(main())
        """
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as app:
        child = int(app.stdout.readline())
        assert alive(child)
        app.kill()
        await until(lambda: not alive(child), seconds=2)


async def test_a_child_whose_work_does_not_move_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_process, "BEAT_SECONDS", 0.1)
    code = textwrap.dedent(
        """
        import socket, sys
        from dsv4chat.runtime.protocol import PROTOCOL_VERSION, Hello, Ping, Pong, frame, read_request
        peer = socket.socket(fileno=int(sys.argv[sys.argv.index("--fd") + 1]))
        peer.sendall(frame(Hello(version=PROTOCOL_VERSION, pid=1)))
        stream = peer.makefile("rb")
        while header := stream.read(4):
            request = read_request(stream.read(int.from_bytes(header, "little")))
            if isinstance(request, Ping):
                peer.sendall(frame(Pong(number=request.number, busy_ms=75_000.0)))
        """
    )
    engine = EngineProcess(log_folder=tmp_path, command=[sys.executable, "-c", code])
    await engine.start()
    await until(lambda: engine.stalled)
    assert engine.stalled.answers
    assert engine.stalled.seconds == 75
    await engine.close()
    assert engine.stalled is None


def test_beats_are_counted_not_seconds():
    """After a pause of this process itself the child has missed one beat at most."""
    heart = Heartbeat()
    assert heart.beat()  # asks
    for _ in range(SILENT_BEATS - 1):
        assert not heart.beat()  # still waits for the answer
        assert heart.hang() is None
    assert not heart.beat()
    assert heart.hang() is not None
    heart.heard()  # anything at all is a sign of life
    assert heart.hang() is None
    heart.answered(Pong(number=0, busy_ms=1000 * STUCK_SECONDS - 1))
    assert heart.beat()
    assert heart.hang() is None


@pytest.mark.parametrize("busy", [None, 0.0])
def test_an_idle_child_does_not_hang(busy):
    heart = Heartbeat()
    heart.beat()
    heart.answered(Pong(number=0, busy_ms=busy))
    assert heart.hang() is None
