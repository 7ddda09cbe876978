"""Starting the engine's process: what can be in the way, and who answers instead of it."""

import asyncio
import sys
import textwrap

import pytest

from dsv4chat.engine_process import EngineDied, EngineFailed, EngineProcess
from tests.support.peer import PEER


async def test_a_child_that_cannot_start_says_why(tmp_path):
    missing = EngineProcess(log_folder=tmp_path, command=[str(tmp_path / "no-python")])
    with pytest.raises(EngineDied, match="could not be started"):
        await missing.start()
    crashing = EngineProcess(
        log_folder=tmp_path, command=[sys.executable, "-c", "raise SystemExit('no luck')"]
    )
    with pytest.raises(EngineDied, match="exited with code 1") as died:
        await crashing.start()
    assert "no luck" in died.value.last_lines
    await crashing.close()
    await missing.close()


@pytest.mark.parametrize(
    ("says", "sentence"),
    [
        (b"\x07\x00\x00\x00garbage", "no message"),
        (b"\xff\xff\xff\xff", "frame of"),
        (b"", "exited with code 0"),
    ],
)
async def test_a_peer_that_talks_nonsense_is_given_up(tmp_path, says, sentence):
    code = PEER + f"peer.sendall({says!r})"
    engine = EngineProcess(log_folder=tmp_path, command=[sys.executable, "-c", code])
    with pytest.raises(EngineDied, match=sentence):
        await engine.start()
    await engine.close()


async def test_another_version_of_the_protocol_is_refused(tmp_path):
    code = PEER + textwrap.dedent(
        """
        from dsv4chat.runtime.protocol import Hello, frame
        peer.sendall(frame(Hello(version=999, pid=1)))
        time.sleep(60)
        """
    )
    engine = EngineProcess(log_folder=tmp_path, command=[sys.executable, "-c", code])
    with pytest.raises(EngineFailed, match="version 999") as failed:
        await engine.start()
    assert failed.value.kind == "VersionMismatch"
    assert not engine.alive


async def test_files_of_the_current_folder_do_not_stand_in_for_modules(tmp_path, monkeypatch):
    for name in ("queue", "torch", "msgspec", "dsv4chat"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong module')")
    monkeypatch.chdir(tmp_path)
    async with EngineProcess(log_folder=tmp_path) as engine:
        await engine.ping()


async def test_two_engines_at_once_have_a_log_each(tmp_path):
    async with EngineProcess(log_folder=tmp_path) as one, EngineProcess(log_folder=tmp_path) as two:
        assert one.pid != two.pid
        assert one.log_path != two.log_path
        await asyncio.gather(one.ping(), two.ping())


async def test_an_engine_that_was_not_started_says_so(tmp_path):
    engine = EngineProcess(log_folder=tmp_path)
    assert not engine.alive
    with pytest.raises(EngineFailed, match="start it first"):
        await engine.ping()
    await engine.close()
