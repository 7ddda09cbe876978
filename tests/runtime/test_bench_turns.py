"""bench turns: real turns of real conversations, and what each of them fed."""

import json

import pytest
from click.testing import CliRunner

from dsv4chat.cli import main
from dsv4chat.cli.bench_turns import MODES as CHOICES
from dsv4chat.runtime.bench_turns import ANSWER_TOKENS, MESSAGE_TOKENS, MODES, QUESTION_TOKENS
from tests.support.engines import save_random


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "tiny"
    return str(save_random(folder, (0, 4, 128), text=True, hidden_size=32, hash_layers=1))


def run(*arguments):
    result = CliRunner().invoke(main, ["bench", "turns", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_the_command_offers_the_modes_there_are():
    assert CHOICES == MODES


def test_every_turn_but_the_first_feeds_little_in_every_mode_and_after_a_restart(model):
    sizes = ("--turns", "3", "--questions", "3", "--document", "150")
    result = run("--model", model, *sizes, "--json")
    found = json.loads(result.stdout)["conversations"]
    assert [entry["mode"] for entry in found] == [mode for mode in MODES for _ in range(2)]
    for number, entry in enumerate(found):
        message = (MESSAGE_TOKENS, QUESTION_TOKENS)[number % 2]
        first, *others = entry["turns"]
        assert len(others) == 2
        assert (first["reused"], first["prefilled"]) == (0, first["prompt"])
        assert first["prompt"] > (150 if number % 2 else MESSAGE_TOKENS - 9)
        assert len(entry["restarts"]) == 3
        for turn in (*others, *(restart["turn"] for restart in entry["restarts"])):
            assert turn["reused"] + turn["prefilled"] == turn["prompt"]
            # The message, its opener, the end of the last answer; where reasoning is dropped, that answer.
            assert 0 < turn["prefilled"] <= message + ANSWER_TOKENS + 6
            assert turn["warm_ms"] > 0
            assert turn["cold_ms"] > 0
        assert {restart["restored"] for restart in entry["restarts"]} == {"disk"}
        ratios = [turn["cold_ms"] / turn["warm_ms"] for turn in others]
        assert entry["ratio"] == pytest.approx(sum(ratios) / 2)
        assert entry["saved_bytes"] > 0


def test_the_table_has_a_line_for_each_conversation(model):
    sizes = ("--turns", "3", "--questions", "3", "--document", "60")
    lines = run("--model", model, "--mode", "chat", *sizes).stdout.splitlines()
    assert len(lines) == 4
    assert lines[2].startswith("3 questions")
    assert lines[3].startswith("60 tokens, 3 questions")


def test_a_model_that_is_not_there_is_a_sentence(tmp_path):
    result = run("--model", str(tmp_path / "nothing"))
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith("dsv4chat bench: ")
