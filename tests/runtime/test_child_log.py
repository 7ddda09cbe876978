"""Where native output of the runtime's process goes, and that it stays within bounds."""

import os
import signal
import subprocess
import sys
import time

import pytest

from dsv4chat.runtime.protocol import Failed, Load, Ping, Pong, Ready, Shutdown
from tests.support.child import Child


def test_a_log_without_a_name_is_emptied_when_it_grows(tmp_path):
    child = Child(tmp_path / "log", named=False)
    try:
        child.receive()
        with open(f"/proc/{child.process.pid}/fd/1", "ab", buffering=0) as output:
            for _ in range(90):
                output.write(b"flood " * 10_000)
        deadline = time.monotonic() + 10
        while child.log.stat().st_size > 2**20:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert [path.name for path in tmp_path.iterdir()] == ["log"]
    finally:
        child.end()


needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")


@needs_full
def test_a_log_that_cannot_be_written_is_not_in_the_way(tmp_path, folder):
    (tmp_path / "log").symlink_to("/dev/full")
    child = Child(tmp_path / "log")
    try:
        child.receive()
        child.send(Load(model=str(tmp_path / "none")))
        assert isinstance(child.until(Ready, Failed)[-1], Failed)
        child.send(Load(model=str(folder), max_context=600))
        assert isinstance(child.until(Ready, Failed)[-1], Ready)
        child.send(Shutdown())
        assert child.wait(5) == 0
    finally:
        child.end()


@pytest.mark.parametrize("broken", [False, pytest.param(True, marks=needs_full)])
def test_what_is_printed_is_lost_only_if_it_cannot_be_written(tmp_path, broken):
    log = tmp_path / "log"
    if broken:
        log.symlink_to("/dev/full")
    code = (
        "import sys, os, traceback\n"
        "from dsv4chat.runtime.child_log import never_in_the_way\n"
        "never_in_the_way()\n"
        "print('a \\ud800 line')\n"
        "try: 1 / 0\n"
        "except ZeroDivisionError: traceback.print_exc()\n"
        "os._exit(7)"
    )
    with log.open("ab") as output:
        run = subprocess.run([sys.executable, "-c", code], stdout=output, stderr=output, check=False)
    assert run.returncode == 7
    if not broken:
        text = log.read_text()
        assert text.startswith("a \\ud800 line\nTraceback")
        assert text.endswith("ZeroDivisionError: division by zero\n")


def test_output_of_native_code_goes_to_the_log_and_a_flood_is_moved_aside(fresh):
    fresh.receive()
    pid = fresh.process.pid
    # The child's own descriptors, as a library would use them.
    flood = (
        os.open(f"/proc/{pid}/fd/1", os.O_WRONLY | os.O_APPEND) if os.path.isdir("/proc/self/fd") else None
    )
    if flood is None:
        pytest.skip("needs /proc")
    for _ in range(90):
        os.write(flood, b"flood " * 10_000)
    os.close(flood)
    moved = fresh.log.with_name(fresh.log.name + ".1")
    deadline = time.monotonic() + 10
    while not moved.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert moved.stat().st_size >= 4 * 2**20
    fresh.send(Ping(number=3))
    assert fresh.receive() == Pong(number=3)
    fresh.send(Shutdown())
    fresh.wait(5)
    assert fresh.log.stat().st_size < 1000
    assert "ends: asked to" in fresh.log.read_text()


def test_a_crash_in_native_code_leaves_its_place_in_the_log(fresh, folder):
    fresh.receive()
    fresh.send(Load(model=str(folder), max_context=600))
    assert isinstance(fresh.until(Ready, Failed)[-1], Ready)
    fresh.process.send_signal(signal.SIGSEGV)
    assert fresh.wait(5) == -signal.SIGSEGV
    assert "Segmentation fault" in fresh.log.read_text()
    assert "child.py" in fresh.log.read_text()
