"""kill -9 of either process in the middle of an answer: nothing that was seen a second before is lost."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.support.killing import Program, alive, save_endless

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds processes through /proc")

LOST_SECONDS = 1.0  # of an answer, at most
NOTICED_SECONDS = 2.0  # after this the other process is gone
TALK = 5  # kills in one conversation


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_endless(tmp_path_factory.mktemp("model"))


def kill_the_engine(root: Path, model: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    program = Program(root, model)
    program.open()
    try:
        for number in range(kills):
            if number and number % TALK == 0:
                program.terminal.send("\x0e")  # a new conversation
                program.look(0.5)
            program.ask(f"Question {number}")
            program.look(chance.uniform(0, 1.5))
            os.kill(program.child(), signal.SIGKILL)
            killed = time.monotonic()
            program.until(lambda: "starts it again" in program.terminal.text, "the news of the death")
            print(f"kill {number}: told after {time.monotonic() - killed:.2f} s")
            program.until(lambda: program.messages()[-1].state != "writing", "the end of the answer")
            *before, question, answer = program.messages()
            assert (question.content, answer.state) == (f"Question {number}", "failed")
            assert len(answer.ids) >= program.most_seen(time.monotonic())
            assert len(before) == 2 * (number % TALK)
            program.terminal.forget()
            program.terminal.send("\x1b[15~")  # F5
            program.until(lambda: "· cpu" in program.terminal.text, "a new engine")
        program.ask("Last question")
        program.terminal.send("\x1b")
        program.until(lambda: program.messages()[-1].state == "stopped", "a stopped answer")
        assert program.quit() == 0
    finally:
        program.terminal.close()
    program.gone_after()
    assert program.litter() == []


def kill_the_app(root: Path, model: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    program = Program(root, model)
    for number in range(kills + 1):
        program.open()
        try:
            if number:
                program.until(lambda: program.messages()[-1].state == "interrupted", "the old answer's mark")
            if number % TALK == 0:
                program.terminal.send("\x0e")
                program.look(0.5)
            program.ask(f"Question {number}")
            if number == kills:
                program.terminal.send("\x1b")
                program.until(lambda: program.messages()[-1].state == "stopped", "a stopped answer")
                assert program.quit() == 0
                break
            program.look(chance.uniform(0, 2.5))
            seen = program.most_seen(program.kill() - LOST_SECONDS)
            left = program.gone_after()
            print(f"kill {number}: engine gone after {left:.2f} s; {seen} tokens had been seen for a second")
            assert left < NOTICED_SECONDS
            *before, question, answer = program.messages()
            assert (question.content, answer.state) == (f"Question {number}", "interrupted")
            assert len(answer.ids) >= seen
            assert len(before) == 2 * (number % TALK)
        finally:
            program.terminal.close()
    program.gone_after()
    assert program.litter() == []


@pytest.mark.timeout(300)
def test_killed_engines_lose_nothing_and_the_next_turn_works(tmp_path: Path, model: Path) -> None:
    kill_the_engine(tmp_path, model, kills=5, seed=1)


@pytest.mark.timeout(300)
def test_a_killed_app_loses_a_second_at_most_and_leaves_nothing_running(tmp_path: Path, model: Path) -> None:
    kill_the_app(tmp_path, model, kills=2, seed=2)


@pytest.mark.timeout(300)
def test_text_typed_before_the_app_is_killed_is_in_the_input_again(tmp_path: Path, model: Path) -> None:
    program = Program(tmp_path, model)
    program.open()
    try:
        program.terminal.send("half a questio")
        program.look(0.5)
        program.terminal.send("n")
        program.look(2 * LOST_SECONDS)
        program.kill()
    finally:
        program.terminal.close()
    program.gone_after()
    program.open()
    try:
        program.until(lambda: "half a question" in program.terminal.text, "the text in the input")
        assert program.quit() == 0
    finally:
        program.terminal.close()
    program.gone_after()


@pytest.mark.timeout(300)
def test_an_engine_that_hangs_is_told_stopped_and_replaced(tmp_path: Path, model: Path) -> None:
    program = Program(tmp_path, model)
    program.open()
    try:
        program.ask("Question")
        child = program.child()
        os.kill(child, signal.SIGSTOP)
        program.terminal.send("\x1b")
        program.until(lambda: "stopping…" in program.terminal.text, "the news that it stops")
        program.until(lambda: "has not stopped" in program.terminal.text, "the news that it does not")
        program.until(lambda: "has not answered for" in program.terminal.text, "the news that it hangs")
        program.terminal.forget()
        program.terminal.send("\x1b[15~")  # F5
        program.until(lambda: "· cpu" in program.terminal.text, "a new engine")
        assert not alive(child)
        assert program.messages()[-1].state == "stopped"
        assert len(program.messages()[-1].ids) >= program.most_seen(time.monotonic())
        program.ask("Next question")
        program.terminal.send("\x1b")
        program.until(lambda: program.messages()[-1].state == "stopped", "a stopped answer")
        assert program.quit() == 0
    finally:
        program.terminal.close()
    program.gone_after()


def test_a_terminal_that_vanishes_in_mid_answer_ends_the_app_and_its_engine(
    tmp_path: Path, model: Path
) -> None:
    program = Program(tmp_path, model)
    program.open()
    try:
        program.ask("Question")
        program.look(0.3)
        seen = program.most_seen(time.monotonic())
        program.terminal.hang_up()
        program.gone_after(20.0)
    finally:
        program.terminal.close()
    answer = program.messages()[-1]
    assert answer.state == "interrupted"
    assert len(answer.ids) >= seen
    assert program.litter() == []


@pytest.mark.soak
def test_fifty_killed_engines(tmp_path: Path, model: Path) -> None:
    kill_the_engine(tmp_path, model, kills=50, seed=3)


@pytest.mark.soak
def test_twenty_killed_apps(tmp_path: Path, model: Path) -> None:
    kill_the_app(tmp_path, model, kills=20, seed=4)
