"""The parser on any text: cuts change nothing, no word is lost, and time grows with length only."""

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsv4chat.encoding import CompletionParser
from dsv4chat.encoding.events import joined
from tests.support.parsing import D, read, run

PIECES = st.sampled_from(
    [
        *(
            "w",
            " ",
            "\n",
            "<",
            "</",
            ">",
            '"',
            "</think>",
            "<think>",
            D,
            f"<{D}",
            f"</{D}",
            "tool_calls>",
            "invoke>",
            "😀",
        ),
        *(
            f"<{D}tool_calls>\n",
            f"</{D}tool_calls>",
            f'<{D}invoke name="f">\n',
            f"</{D}invoke>\n",
            "[1]",
            "parameter>",
        ),
        *(
            f'<{D}parameter name="p" string="true">',
            f'<{D}parameter name="q" string="false">',
            f"</{D}parameter>\n",
        ),
        *("<｜end▁of▁sentence｜>", "name=", "=", "call", "-" * 40, " " * 20),
    ]
)


@given(st.lists(PIECES, max_size=25).map("".join), st.booleans(), st.lists(st.integers(0, 400), max_size=6))
def test_cutting_never_changes_the_events(text: str, thinking: bool, cuts: list[int]) -> None:
    at = [0, *sorted(cuts), len(text)]
    parser = CompletionParser(thinking)
    events = [event for start, end in itertools.pairwise(at) for event in parser.push(text[start:end])]
    assert joined(events + parser.finish()) == run(text, thinking)[1]


WITHOUT_END = PIECES.filter(lambda piece: "sentence" not in piece)


@given(st.lists(WITHOUT_END, max_size=25), st.booleans())
def test_no_word_is_lost_or_shown_twice(pieces: list[str], thinking: bool) -> None:
    """A numbered word after each piece is found once: as reasoning, answer, argument, or in a call's
    error."""
    text = "".join(f"{piece}‹{number}›" for number, piece in enumerate(pieces))
    parser = read(text, thinking)
    message = parser.message()
    found = (message.reasoning or "") + message.content
    for call in message.tool_calls:
        found += call.name + call.arguments + (call.error or "")
    for number in range(len(pieces)):
        assert found.count(f"‹{number}›") == 1, (text, number)


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "\n",
        "<",
        "</",
        f"<{D}",
        '"',
        f'<{D}invoke name="',
        f"<{D}tool_calls>",
        "</think>",
        f"</{D}invoke>",
    ],
)
@pytest.mark.parametrize(
    "opening", ["", f'<{D}invoke name="f">', f'<{D}invoke name="f"><{D}parameter name="p" string="true">']
)
def test_reading_time_grows_with_length_only(opening: str, piece: str) -> None:
    """Ten times the pieces take about ten times the time; a quadratic reader would take a hundred."""

    def seconds(count: int) -> float:
        parser = CompletionParser(True)
        parser.push(opening)
        start = time.process_time()
        for _ in range(count):
            parser.push(piece)
        parser.finish()
        return time.process_time() - start

    assert seconds(5_000) < 40 * max(min(seconds(500), seconds(500)), 0.002)
