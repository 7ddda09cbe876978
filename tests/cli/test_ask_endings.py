"""How `dsv4chat ask` ends when it is not by its answer: signals, a dead engine, streams that are closed."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.asking import COMMAND, start

pytestmark = pytest.mark.usefixtures("home")


def children_of(pid):
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_ctrl_c_ends_the_turn_keeps_what_was_said_and_leaves_no_process(folder):
    options = ("--model", folder, "--json", "--temperature", "2", "--top-k", "20", "--max-context", 30000)
    with start("hi", *options, stdout=subprocess.PIPE) as process:
        events = []
        while len([event for event in events if event["event"] == "token"]) < 5:
            events.append(json.loads(process.stdout.readline()))
            if events[-1]["event"] == "done":
                pytest.skip("the random model ended its turn by itself")
        engine = children_of(process.pid)
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        rest, errors = process.communicate(timeout=10)
        assert time.monotonic() - sent < 5
    assert process.returncode == 130
    events += [json.loads(line) for line in rest.splitlines()]
    assert events[-1]["event"] == "done"
    assert events[-1]["reason"] == "stopped"
    assert events[-1]["tokens"] == sum(event["event"] == "token" for event in events)
    assert b"Traceback" not in errors
    assert not any(alive(pid) for pid in engine)


def test_ctrl_c_while_loading_ends_it_at_once(folder):
    with start("hi", "--model", folder, stdout=subprocess.PIPE) as process:
        deadline = time.monotonic() + 20
        while not children_of(process.pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        engine = children_of(process.pid)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
    assert process.returncode == 130
    assert b"Traceback" not in errors
    assert not any(alive(pid) for pid in engine)


def test_a_reader_that_leaves_is_no_error(folder):
    options = ("--model", folder, "--json", "--max-tokens", 300, "--temperature", "2")
    with start("hi", *options, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(20) == 0
    assert b"Traceback" not in errors
    assert b"Error" not in errors
    assert b"BrokenPipe" not in errors


def test_closed_standard_streams_are_no_obstacle(folder):
    options = ["--model", str(folder), "--json", "--max-tokens", "1"]
    script = 'exec "$@" <&- 2>&-'
    result = subprocess.run(
        ["sh", "-c", script, "sh", *COMMAND, "hi", *options],
        stdout=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0
    assert json.loads(result.stdout.splitlines()[-1])["event"] == "done"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_a_sentence(folder):
    with open("/dev/full", "wb") as full, start("hi", "--model", folder, "--json", stdout=full) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"No space left" in errors
    assert b"Traceback" not in errors


def test_a_killed_engine_is_told_with_its_log(folder):
    options = ("--model", folder, "--json", "--temperature", "2", "--max-context", 30000)
    with start("hi", *options, stdout=subprocess.PIPE) as process:
        while json.loads(process.stdout.readline())["event"] != "token":
            pass
        for pid in children_of(process.pid):
            os.kill(pid, signal.SIGKILL)
        sent = time.monotonic()
        rest, errors = process.communicate(timeout=10)
        assert time.monotonic() - sent < 5
    if b'"done"' in rest:
        pytest.skip("the random model ended its turn by itself")
    assert process.returncode == 1
    assert json.loads(rest.splitlines()[-1])["kind"] == "EngineDied"
    assert b"SIGKILL" in errors
    assert b".log" in errors
    assert b"Traceback" not in errors
