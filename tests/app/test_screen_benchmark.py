"""The benchmark of the screen: its texts, and a short run of each program in a real terminal."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from dsv4chat.encoding import Tokenizer
from dsv4chat.paths import model_folder
from dsv4chat.screen_bench.texts import END, KINDS, answer

BLOCKS = {"prose": "paragraph_open", "fence": "fence", "list": "bullet_list_open", "table": "table_open"}

pytestmark = pytest.mark.skipif(
    not (model_folder("demo") / "config.json").exists(), reason="this checkout has no demo model"
)


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_of_its_kind_and_length_and_ends_with_the_mark(kind: str) -> None:
    tokenizer = Tokenizer.from_folder(model_folder("demo"))
    ids = answer(kind, 500, tokenizer)
    text = tokenizer.decode(ids)
    assert 480 <= len(ids) <= 560
    assert END in text[-40:]
    assert text.count(END) == 1
    top = [
        token.type for token in MarkdownIt("gfm-like").parse(text) if token.level == 0 and token.nesting >= 0
    ]
    assert set(top) == {BLOCKS[kind]}
    assert len(top) == 1 or kind == "prose"


def test_a_short_run_prints_one_object_for_each_program(tmp_path: Path) -> None:
    options = ["--kind", "fence", "--history", "12", "--tokens", "80", "--rate", "80", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "dsv4chat", "bench", "screen", *options],
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(run["program"], run["history"]) for run in runs] == [("chat", 12), ("plain", 0)]
    for run in runs:
        assert run["keys"] > 0
        assert 0 < run["lag_p50"] <= run["lag_p99"] <= run["lag_max"]
        assert run["seconds"] >= 79 / 80
    assert runs[0]["opened"] > 0


def test_a_kind_that_is_none_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dsv4chat", "bench", "screen", "--kind", "poem"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "poem" in done.stderr
