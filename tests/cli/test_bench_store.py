"""`dsv4chat bench store` builds what it says, measures every kind of thing once at least, and prints it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from dsv4chat.cli import main
from dsv4chat.store import open_history
from dsv4chat.store_benchmark import build_history


def test_the_history_that_is_measured_has_the_size_that_is_said(tmp_path: Path) -> None:
    longest = build_history(tmp_path, conversations=8, messages=60, long=20)
    history = open_history(tmp_path).repository
    lengths = sorted(line.messages for line in history.summaries())
    assert len(lengths) == 8
    assert lengths[-1] == 20
    assert sum(lengths) == 60
    leaf = history.conversation(longest).active_leaf
    assert leaf is not None
    assert len(history.path(leaf)) == 20
    assert len(history.figures(leaf)) == 2000
    assert len(history.search("the", limit=1000)) > 20
    history.close()


@pytest.mark.parametrize("as_json", [True, False])
def test_it_prints_the_median_and_the_maximum_of_each_thing(as_json: bool) -> None:
    size = ["--conversations", "4", "--messages", "30", "--long", "10"]
    result = CliRunner().invoke(main, ["bench", "store", *size, *(["--json"] if as_json else [])])
    assert result.exit_code == 0, result.output
    if not as_json:
        assert "4 conversations, 30 messages" in result.stdout
        assert "search: phrases" in result.stdout
        return
    found = json.loads(result.stdout)
    timings = {timing["what"]: timing for timing in found["timings"]}
    assert len([what for what in timings if what.startswith("search")]) >= 10
    assert all(0 < timing["median_ms"] <= timing["max_ms"] for timing in timings.values())
    assert timings["search: a first letter"]["times"] >= 20


def test_a_size_that_cannot_be_is_refused() -> None:
    result = CliRunner().invoke(main, ["bench", "store", "--conversations", "50", "--messages", "60"])
    assert result.exit_code == 2
    assert "two messages" in result.stderr
