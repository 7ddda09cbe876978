"""The runtime's process, spoken to over its socket without the app's client."""

import os
import socket
import time

import msgspec
import pytest

from dsv4chat.runtime.protocol import (
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
    SamplingParams,
    Shutdown,
    Stop,
    Token,
    frame,
)
from tests.support.child import Child

ENDLESS = SamplingParams(seed=1, ignore_eos=True)


@pytest.fixture(scope="module")
def loaded(folder, tmp_path_factory):
    """One child with a model, for tests that leave it as they found it."""
    child = Child(tmp_path_factory.mktemp("log") / "child.log")
    assert child.receive() == Hello(version=PROTOCOL_VERSION, pid=child.process.pid)
    child.send(Load(model=str(folder), max_context=600))
    child.loading = child.until(Ready, Failed)
    assert isinstance(child.loading[-1], Ready)
    yield child
    child.end()


def start(child, folder):
    child.send(Load(model=str(folder), max_context=600))
    assert isinstance(child.until(Ready, Failed)[-1], Ready)


def test_loading_is_told_and_the_model_described(loaded, folder):
    *progress, ready = loaded.loading
    assert all(isinstance(message, Loading) for message in progress)
    last = progress[-1]
    assert 0 < last.bytes_done <= last.bytes_total
    assert last.tensors_done == last.tensors_total > 0
    assert last.seconds_left is not None
    assert ready.path == str(folder)
    assert ready.layer_kinds == ["hca", "hca", "csa", "hca", "csa"]
    assert (ready.layers, ready.hidden_size, ready.max_context) == (5, 64, 600)
    assert ready.has_tokenizer
    assert ready.parameters > 100_000
    assert ready.load_seconds > 0


def test_a_turn_is_prefill_then_tokens_then_the_end(loaded):
    loaded.send(
        Generate(
            turn=1,
            conversation="one",
            ids=list(range(20)),
            sampling=SamplingParams(seed=1, max_tokens=5, ignore_eos=True),
            boundaries=[10],
            alternatives=3,
        )
    )
    replies = loaded.until(Finished, Failed)
    assert all(reply.turn == 1 for reply in replies)
    prefill = [reply for reply in replies if isinstance(reply, Prefill)]
    assert [(p.done, p.total, p.reused) for p in prefill] == [(n, 20, 0) for n in (0, 10, 19, 20)]
    tokens = [reply for reply in replies if isinstance(reply, Token)]
    assert [type(reply) for reply in replies] == [Prefill] * 4 + [Token] * 5 + [Finished]
    assert all(len(token.residual) == 5 and len(token.alternatives) == 3 for token in tokens)
    end = replies[-1]
    assert (end.reason, end.prefilled, end.reused, end.tokens) == ("length", 20, 0, 5)
    assert end.ttft_ms > end.first_decode_ms > 0
    assert end.tokens_per_second > 0


def test_conversations_stay_warm_until_dropped(loaded):
    def reused():
        one = SamplingParams(seed=1, max_tokens=1)
        loaded.send(Generate(turn=2, conversation="warm", ids=[0, 7, 8, 9], sampling=one))
        return loaded.until(Finished)[-1].reused

    assert [reused(), reused()] == [0, 3]
    loaded.send(Drop(conversation="warm"))
    assert reused() == 0


def test_stop_takes_effect_within_one_token(loaded):
    loaded.send(Generate(turn=3, conversation="stop", ids=[0, 5], sampling=ENDLESS))
    loaded.until(Token)
    loaded.send(Ping(number=1), Stop(turn=3))
    # The pong comes from the thread that then takes in the stop; a token may be computed meanwhile.
    before = loaded.until(Pong)
    after = loaded.until(Finished)
    assert after[-1].reason == "stopped"
    assert sum(isinstance(reply, Token) for reply in after) <= 2
    assert after[-1].tokens == 1 + sum(isinstance(reply, Token) for reply in before + after)


def test_stop_ends_a_long_prefill(loaded):
    loaded.send(Generate(turn=4, conversation="long", ids=[5] * 590, sampling=ENDLESS), Stop(turn=4))
    end = loaded.until(Finished)[-1]
    assert end.reason == "stopped"
    assert end.prefilled < 590
    assert end.tokens == 0


def test_a_stop_of_another_turn_does_nothing(loaded):
    loaded.send(Stop(turn=77))
    some = SamplingParams(seed=1, max_tokens=3, ignore_eos=True)
    loaded.send(Generate(turn=5, conversation="other", ids=[0], sampling=some))
    assert loaded.until(Finished)[-1].tokens == 3


def test_a_ping_is_answered_during_a_turn(loaded):
    loaded.send(Generate(turn=6, conversation="ping", ids=[0, 5], sampling=ENDLESS))
    loaded.until(Token)
    loaded.send(Ping(number=42))
    assert loaded.until(Pong)[-1].number == 42
    loaded.send(Stop(turn=6))
    loaded.until(Finished)


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (Generate(turn=9, conversation="bad", ids=[]), "EngineError"),
        (Generate(turn=9, conversation="bad", ids=[10**6]), "EngineError"),
        (Generate(turn=9, conversation="bad", ids=[1] * 601), "ContextOverflowError"),
        (Generate(turn=9, conversation="bad", ids=[1], sampling=SamplingParams(top_p=7)), "SamplingError"),
    ],
)
def test_a_request_that_cannot_be_done_is_answered_with_a_sentence(loaded, request_, kind):
    loaded.send(request_)
    reply = loaded.receive()
    assert isinstance(reply, Failed)
    assert (reply.turn, reply.kind) == (9, kind)
    assert reply.message.endswith(".")
    assert "Traceback" not in loaded.log.read_text()


def test_generating_before_loading_is_answered(fresh):
    fresh.receive()
    fresh.send(Generate(turn=1, conversation="a", ids=[1]))
    assert fresh.receive() == Failed(
        turn=1, kind="EngineError", message="No model is loaded yet; load one first."
    )


def test_a_failed_load_is_answered_and_another_can_follow(fresh, folder, tmp_path):
    fresh.receive()
    fresh.send(Load(model=str(tmp_path / "nothing")))
    failed = fresh.until(Ready, Failed)[-1]
    assert failed.kind == "ConfigError"
    assert "There is no folder" in failed.message
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in folder.iterdir():
        (broken / file.name).write_bytes(file.read_bytes())
    shard = next(broken.glob("*.safetensors"))
    shard.write_bytes(shard.read_bytes()[:-1000])
    fresh.send(Load(model=str(broken)))
    assert fresh.until(Ready, Failed)[-1].kind == "CheckpointError"
    start(fresh, folder)


FAULTY = """
import dsv4chat.runtime.engine as engine
from dsv4chat.runtime.child import main

def load(*_, **__):
    raise RuntimeError({message!r})

engine.Engine.load = load
main()
"""


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("the moon is full", "met an error it did not expect (RuntimeError: the moon is full)"),
        ("[enforce fail] DefaultCPUAllocator: not enough memory: you tried", "not enough memory for this;"),
    ],
)
def test_an_unforeseen_error_is_a_sentence_here_and_a_traceback_in_the_log(tmp_path, message, sentence):
    child = Child(tmp_path / "log", ("-c", FAULTY.format(message=message)))
    try:
        child.receive()
        child.send(Load(), Ping(number=5))
        failed = next(reply for reply in child.until(Failed) if isinstance(reply, Failed))
        assert failed.kind == "RuntimeError"
        assert sentence in failed.message
        assert "Traceback" in child.log.read_text()
    finally:
        child.end()


def test_it_ends_when_asked(fresh):
    fresh.receive()
    fresh.send(Shutdown())
    assert fresh.wait(2) == 0


@pytest.mark.parametrize("moment", ["idle", "turn", "prefill"])
def test_it_ends_within_two_seconds_when_the_connection_closes(fresh, folder, moment):
    fresh.receive()
    if moment != "idle":
        start(fresh, folder)
    if moment == "turn":
        fresh.send(Generate(turn=1, conversation="a", ids=[1], sampling=ENDLESS))
        fresh.until(Token)
    elif moment == "prefill":
        fresh.send(Generate(turn=1, conversation="a", ids=[1] * 599, sampling=ENDLESS))
        fresh.until(Prefill)
    closed = time.monotonic()
    fresh.stream.close()
    fresh.socket.close()
    fresh.wait(5)
    assert time.monotonic() - closed < 2


@pytest.mark.parametrize(
    "bytes_",
    [
        frame(Ping(number=1))[:-2],
        (2**32 - 1).to_bytes(4, "little"),
        (0).to_bytes(4, "little"),
        (3).to_bytes(4, "little") + b"\xff\xff\xff",
        (len(body := msgspec.msgpack.encode({"type": "Launch"}))).to_bytes(4, "little") + body,
    ],
)
def test_nonsense_on_the_socket_ends_it_with_a_line_in_the_log(fresh, bytes_):
    fresh.receive()
    fresh.socket.sendall(bytes_)
    fresh.socket.shutdown(socket.SHUT_WR)
    assert fresh.wait(5) == 0
    assert "ends:" in fresh.log.read_text()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_an_idle_child_is_not_busy_and_one_at_work_says_since_when_it_moved(fresh, folder):
    fresh.receive()
    start(fresh, folder)
    for _ in range(100):  # "ready" is sent a moment before the load is over
        fresh.send(Ping(number=1))
        if fresh.receive() == Pong(number=1):
            break
        time.sleep(0.05)
    else:
        pytest.fail("an idle child says that it is busy")
    fresh.send(Generate(turn=2, conversation="a", ids=[1, 2], sampling=ENDLESS))
    while not isinstance(fresh.receive(), Token):
        pass
    fresh.send(Ping(number=3))
    while not isinstance(answer := fresh.receive(), Pong):
        pass
    assert 0 <= answer.busy_ms < 5000


def test_threads_are_decided_before_the_libraries_are_imported(monkeypatch):
    from dsv4chat.runtime import threads

    for variable in (*threads.COUNTS, *threads.WAITING):
        monkeypatch.setenv(variable, "")
        monkeypatch.delenv(variable)
    assert threads.decide_threads() == threads.physical_cores() >= 1
    assert threads.physical_cores() <= os.cpu_count()
    assert threads.decide_threads(3) == 3
    assert {os.environ[variable] for variable in threads.COUNTS} == {"3"}
    assert threads.decide_threads() == 3
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    threads.decide_threads()
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"
