"""What a turn costs after the program, or its engine, was started again: only its own tokens."""

import os
import signal
from pathlib import Path

import pytest

from dsv4chat.store import MessageRecord
from tests.support.killing import Program, save_endless

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds processes through /proc")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_endless(tmp_path_factory.mktemp("model"))


@pytest.fixture
def program(tmp_path: Path, model: Path) -> Program:
    return Program(tmp_path, model, DSV4CHAT_CHAT__THINKING="false", DSV4CHAT_SAMPLING__MAX_TOKENS="30")


def fed(answer: MessageRecord) -> tuple[int, int, int]:
    """(prompt, sampled, prefilled) of a turn."""
    made = answer.generation
    assert made is not None
    assert made.prompt_tokens is not None
    assert made.prefilled is not None
    assert made.reused == made.prompt_tokens - made.prefilled
    return made.prompt_tokens, len(answer.ids), made.prefilled


def costs_its_own_tokens(before: MessageRecord, after: MessageRecord) -> None:
    prompt, sampled, _ = fed(before)
    longer, _, prefilled = fed(after)
    assert prefilled <= longer - (prompt + sampled) + 1


def test_a_turn_costs_its_own_tokens_after_quitting_and_after_either_process_was_killed(
    program: Program,
) -> None:
    program.open()
    try:
        first = program.answered("First question, of a certain length")
        assert fed(first)[2] == fed(first)[0]  # nothing was there
        second = program.answered("Second question")
        costs_its_own_tokens(first, second)
        assert program.quit() == 0
        assert program.saved()

        program.open()  # it was saved on leaving
        third = program.answered("Third question")
        costs_its_own_tokens(second, third)
        count = len(program.saved())
        program.until(lambda: len(program.saved()) > count, "a save while nothing is going on")
        os.kill(program.child(), signal.SIGKILL)
        program.until(lambda: "starts it again" in program.terminal.text, "the news of the death")
        fourth = program.answered("Fourth question")  # which starts another engine
        costs_its_own_tokens(third, fourth)
        count = len(program.saved())
        program.until(lambda: len(program.saved()) > count, "a save while nothing is going on")
        program.kill()
        program.gone_after()

        program.open()
        fifth = program.answered("Fifth question")
        costs_its_own_tokens(fourth, fifth)
        assert program.quit() == 0
    finally:
        program.terminal.close()
    assert program.litter() == []
