"""The parser on text alone: borders, tool calls and everything that can be wrong with them."""

import itertools
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsv4chat.encoding import (
    CompletionParser,
    Event,
    Message,
    Stopped,
    ToolCallArgument,
    ToolCallEnd,
    ToolCallStart,
)
from dsv4chat.encoding.events import joined

D = "｜DSML｜"
TOOLS = [
    {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {}, "days": {}}}},
    {"type": "function", "function": {"name": "clock"}},
]


def parameter(name: str, value: str, string: str = "true") -> str:
    return f'<{D}parameter name="{name}" string="{string}">{value}</{D}parameter>\n'


def invoke(*parameters: str, name: str = "get_weather") -> str:
    return f'<{D}invoke name="{name}">\n{"".join(parameters)}</{D}invoke>\n'


def block(*calls: str, wrapper: str = "tool_calls") -> str:
    return f"\n\n<{D}{wrapper}>\n{''.join(calls)}</{D}{wrapper}>"


def run(
    text: str, thinking: bool = True, reason: str = "stop", tools: Any = None
) -> tuple[CompletionParser, list[Event]]:
    """The parser after `text` and its events, the same whole as in single characters."""
    parser = CompletionParser(thinking, tools=tools)
    events = [event for character in text for event in parser.push(character)] + parser.finish(reason)
    whole = CompletionParser(thinking, tools=tools)
    assert joined(whole.push(text) + whole.finish(reason)) == joined(events)
    check_consistent(parser, events)
    return parser, joined(events)


def read(text: str, thinking: bool = True, reason: str = "stop", tools: Any = None) -> CompletionParser:
    return run(text, thinking, reason, tools)[0]


def check_consistent(parser: CompletionParser, events: list[Event]) -> None:
    message = parser.message()
    assert "".join(e.text for e in events if type(e).__name__ == "ReasoningText") == (message.reasoning or "")
    assert "".join(e.text for e in events if type(e).__name__ == "AnswerText") == message.content
    assert tuple(e.call for e in events if isinstance(e, ToolCallEnd)) == message.tool_calls
    for index, call in enumerate(message.tool_calls):
        mine = [e for e in events if getattr(e, "index", None) == index]
        assert mine[0] == ToolCallStart(index, call.name)
        assert mine[-1] == ToolCallEnd(index, call)
        assert "".join(e.text for e in mine if isinstance(e, ToolCallArgument)) == call.arguments
        assert isinstance(json.loads(call.arguments), dict)
        assert call.valid == (call.error is None)
    assert isinstance(events[-1], Stopped)
    assert sum(isinstance(e, Stopped) for e in events) == 1


def said(text: str, thinking: bool = True) -> tuple[str | None, str]:
    message = read(text, thinking).message()
    return message.reasoning, message.content


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("r</think>a", "r", "a"),
        ("\n\nr\n\n</think>\n\na\n", "r", "a\n"),
        ("r</think>a</think>b", "r", "ab"),
        ("r<think>x</think>a<think>b", "r<think>x", "a<think>b"),
        ("</think>a", "", "a"),
        ("", "", ""),
        ("r</thi", "r</thi", ""),
        ("r</think>a <", "r", "a <"),
        ("r</think>1 < 2 && 3 > 2; cat </dev/null 2>&1", "r", "1 < 2 && 3 > 2; cat </dev/null 2>&1"),
        ("r</think>a<｜end▁of▁sentence｜>b", "r", "a"),
        ("r<｜end▁of▁sentence｜>", "r", ""),
        ("r</think>a<｜end▁of", "r", "a<｜end▁of"),
        ("r</think><｜User｜> is a token", "r", "<｜User｜> is a token"),
        (f"r</think>the {D} token", "r", f"the {D} token"),
        (f"r</think>a <{D}foo> b", "r", f"a <{D}foo> b"),
        (f"r</think>a <{D}tool_calls> b", "r", f"a <{D}tool_calls> b"),
        (f"r</think>a </{D}tool_calls> b", "r", f"a </{D}tool_calls> b"),
        (f"r</think>a <{D}tool_ca", "r", f"a <{D}tool_ca"),
        (f'r</think>a <{D}invoke name="x\n', "r", f'a <{D}invoke name="x\n'),
        (
            "r</think>[bracket] \x1b[31m\x1b]52;c;x\x07 \u202e\u200d",
            "r",
            "[bracket] \x1b[31m\x1b]52;c;x\x07 \u202e\u200d",
        ),
        pytest.param("r</think>" + "x" * 10_000, "r", "x" * 10_000, id="a long line"),
    ],
)
def test_text_goes_to_reasoning_and_answer(text: str, reasoning: str, answer: str) -> None:
    assert said(text) == (reasoning, answer)


def test_chat_mode_has_no_reasoning_and_drops_a_closing_think() -> None:
    assert said("\na</think>b<think>c", thinking=False) == (None, "ab<think>c")


def test_missing_think_end_stays_reasoning_and_is_offered_as_the_answer() -> None:
    parser = read("The capital is Paris.")
    assert (parser.message().reasoning, parser.message().content) == ("The capital is Paris.", "")
    assert parser.offered_answer == "The capital is Paris."


@pytest.mark.parametrize(
    ("text", "reason"), [("r</think>", "stop"), ("r</think>a", "stop"), ("r", "length"), ("", "stop")]
)
def test_nothing_is_offered_when_the_thinking_ended_or_was_cut_off(text: str, reason: str) -> None:
    assert read(text, reason=reason).offered_answer is None


VALUES = [
    *(
        "Paris",
        "",
        " ",
        "\n",
        "2>&1",
        "a < b",
        "</",
        "<",
        "</b>",
        'say "hi"',
        "C:\\dir\\n",
        "<think>",
        "</think>",
    ),
    *(
        "line\nline\r\n\ttab",
        "東京 👍🏽 👩‍👩‍👧 e\u0301",
        "\x00\x1b]52;\u202e\u2028",
        f"<{D}parameter",
        f"</{D}param",
        f"{D}>",
    ),
    *(
        "<｜User｜>",
        "<tool_result>",
        "[1, 2",
        "x" * 5000,
        f'<{D}parameter name="z" string="true">',
        f"</{D}foo>",
    ),
]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_a_text_value_arrives_as_it_is(value: str) -> None:
    parser = read("r</think>ok" + block(invoke(parameter("city", value))), tools=TOOLS)
    (call,) = parser.message().tool_calls
    assert (json.loads(call.arguments), call.valid) == ({"city": value}, True)
    assert (parser.message().content, parser.finish_reason) == ("ok", "tool_calls")


@pytest.mark.parametrize(
    "value", ["2", " [1, 2.50] ", '{"a": {"b": null}}', "true", '"text"', "1234567890123456789012"]
)
def test_a_json_value_keeps_its_spelling(value: str) -> None:
    (call,) = read(block(invoke(parameter("days", value, "false")))).message().tool_calls
    assert (call.arguments, call.valid) == ('{"days": ' + value + "}", True)


@pytest.mark.parametrize(
    "value",
    [
        *("[1, 2", "", "True", "NaN", "1e400", "{'a': 1}", "Paris", '"\\ud800"'),
        pytest.param("[" * 100_000, id="deeply nested"),
    ],
)
def test_a_value_that_is_not_json_is_kept_as_text_in_an_invalid_call(value: str) -> None:
    (call,) = read(block(invoke(parameter("days", value, "false")))).message().tool_calls
    assert json.loads(call.arguments) == {"days": value}
    assert not call.valid
    assert '"days" is not JSON' in str(call.error)


@pytest.mark.parametrize(
    ("call_text", "error"),
    [
        (invoke(parameter("city", "a"), parameter("city", "b")), 'parameter "city" is given twice'),
        (invoke(parameter("town", "a")), 'no parameter "town"; its parameters are: city, days'),
        (invoke(name="weather"), 'no tool "weather"; the tools are: get_weather, clock'),
        (invoke(parameter("city", "a", "maybe")), 'must say string="true"'),
        (invoke("what is this", parameter("city", "a")), "outside of the parameters: what is this"),
        (invoke(f"</{D}parameter>"), "closed that was not opened"),
        (f"<{D}invoke>\n</{D}invoke>\n", "names no tool"),
        (f'<{D}invoke name="clock">\n', "not closed"),
        (
            f'<{D}invoke name="get_weather"><{D}parameter name="city" string="true">x</{D}invoke>',
            "not closed",
        ),
    ],
)
def test_a_malformed_call_is_invalid_and_says_why(call_text: str, error: str) -> None:
    parser = read("r</think>a" + block(call_text), tools=TOOLS)
    (call,) = parser.message().tool_calls
    assert not call.valid
    assert error in str(call.error)
    assert (parser.message().content, parser.finish_reason) == ("a", "tool_calls")


def test_any_tool_and_parameter_is_accepted_when_no_tools_are_known() -> None:
    (call,) = read(block(invoke(parameter("x", "1"), name="anything"))).message().tool_calls
    assert call.valid


def test_parameters_beyond_the_listed_ones_are_accepted_where_the_schema_allows_them() -> None:
    tools = [{"name": "f", "parameters": {"properties": {}, "additionalProperties": True}}, {"name": "g"}]
    calls = read(
        block(invoke(parameter("x", "1"), name="f"), invoke(parameter("x", "1"), name="g")), tools=tools
    )
    assert [call.valid for call in calls.message().tool_calls] == [True, True]


def test_several_calls_have_their_own_index_and_id() -> None:
    calls = read(block(invoke(parameter("city", "a")), invoke(parameter("city", "b")))).message().tool_calls
    assert [json.loads(call.arguments)["city"] for call in calls] == ["a", "b"]
    assert len({call.id for call in calls}) == 2


@pytest.mark.parametrize("wrapper", ["toolcalls", "tool_call", "function_calls", "tool-calls"])
def test_a_misspelt_wrapper_is_accepted(wrapper: str) -> None:
    parser = read("r</think>a" + block(invoke(parameter("city", "x")), wrapper=wrapper) + "\n", tools=TOOLS)
    assert (parser.message().content, [call.valid for call in parser.message().tool_calls]) == ("a", [True])


@pytest.mark.parametrize("ending", ["", f"</{D}tool_calls>", f"</{D}toolcalls>\n"])
def test_calls_outside_of_a_wrapper_are_accepted(ending: str) -> None:
    parser = read(
        "r</think>a\n" + invoke(parameter("city", "x")) + invoke(name="clock") + ending, tools=TOOLS
    )
    assert (parser.message().content, len(parser.message().tool_calls)) == ("a", 2)
    assert all(call.valid for call in parser.message().tool_calls)


def test_a_block_in_the_reasoning_ends_it() -> None:
    parser = read("I need it." + block(invoke(parameter("city", "x"))) + "</think>done")
    message = parser.message()
    assert (message.reasoning, message.content, len(message.tool_calls)) == ("I need it.", "done", 1)


def test_text_after_and_between_blocks_is_kept() -> None:
    one = block(invoke(parameter("city", "x")))
    parser = read("r</think>before" + one + "\n\nbetween" + one + "\nafter\n")
    assert parser.message().content == "before\n\nbetween\nafter\n"
    assert len(parser.message().tool_calls) == 2


def test_an_empty_block_leaves_nothing() -> None:
    parser = read("r</think>a" + block() + "\n")
    assert (parser.message().content, parser.finish_reason) == ("a", "stop")


CALL = "r</think>a" + block(invoke(parameter("city", "New York"), parameter("days", "[1, 2]", "false")))


@pytest.mark.parametrize("reason", ["length", "stopped", "stop"])
def test_a_call_cut_off_anywhere_is_invalid_and_nothing_of_it_is_shown_as_text(reason: str) -> None:
    first, last = CALL.index(f"<{D}invoke") + 1, CALL.index(f"</{D}invoke>") + len(f"</{D}invoke>")
    for end in range(first, last):
        parser = read(CALL[:end], reason=reason, tools=TOOLS)
        (call,) = parser.message().tool_calls
        assert not call.valid, CALL[:end]
        assert {"length": "length limit", "stopped": "user stopped", "stop": "ended before"}[reason] in str(
            call.error
        )
        assert parser.message().content == "a"
        assert parser.finish_reason == ("tool_calls" if reason == "stop" else reason)


def test_a_complete_call_in_a_block_cut_off_behind_it_is_valid() -> None:
    last = CALL.index(f"</{D}invoke>") + len(f"</{D}invoke>")
    for end in range(last, len(CALL)):
        parser = read(CALL[:end], reason="length", tools=TOOLS)
        assert [call.valid for call in parser.message().tool_calls] == [True], CALL[:end]
        assert parser.message().content == "a"


def test_a_block_cut_off_before_its_first_call_is_an_invalid_call() -> None:
    parser = read(f"r</think>a\n\n<{D}tool_calls>\n", reason="length")
    (call,) = parser.message().tool_calls
    assert (call.name, call.valid, parser.message().content) == ("", False, "a")


def test_tags_are_read_leniently() -> None:
    first, second = f'<{D}invoke  name = "clock" ></{D}invoke >', f"<{D}invoke name=clock></{D}invoke>"
    text = f"<{D}tool_calls >{first}{second}</{D} tool_calls>"
    parser = read(text, thinking=False, tools=TOOLS)
    assert [(call.name, call.valid) for call in parser.message().tool_calls] == [("clock", True)] * 2
    assert parser.message().content == ""


def test_a_continued_answer_keeps_its_leading_line_breaks() -> None:
    for prefix in (
        Message("assistant", "so far", prefix=True),
        Message("assistant", "x", reasoning="r", prefix=True),
    ):
        parser = CompletionParser(True, prefix=prefix)
        parser.push("\n\nmore")
        assert (parser.message().reasoning, parser.message().content) == ("", "\n\nmore")


def test_continued_reasoning_goes_on_as_reasoning() -> None:
    parser = CompletionParser(True, prefix=Message("assistant", "", reasoning="r", prefix=True))
    parser.push("\nmore</think>\n\na")
    assert (parser.message().reasoning, parser.message().content) == ("\nmore", "a")


def test_kind_says_what_is_being_read() -> None:
    parser = CompletionParser(True)
    kinds = []
    for piece in ("r", "</think>", "a", f"\n\n<{D}", "tool_calls>\n", invoke(), f"</{D}tool_calls>", "b"):
        parser.push(piece)
        kinds.append(parser.kind)
    assert kinds == ["reasoning", "answer", "answer", "tool", "tool", "tool", "answer", "answer"]


def test_text_after_calls_without_a_wrapper_is_answer_again() -> None:
    parser = CompletionParser(True)
    for piece in ("r</think>", invoke(), "done"):
        parser.push(piece)
    assert parser.kind == "answer"
    parser.push(" <")
    parser.finish()
    assert parser.message().content == "done <"


def test_nothing_is_read_after_the_end() -> None:
    parser = CompletionParser(False)
    parser.push("a")
    parser.finish("stopped")
    assert parser.push("b") == parser.finish() == []
    assert (parser.message().content, parser.finish_reason) == ("a", "stopped")


def test_a_surrogate_pair_cut_in_two_is_joined_and_a_half_is_replaced() -> None:
    parser = CompletionParser(False)
    for piece in ("a\ud83d", "\ude00b", "\ud83d", "c", "\udc00"):
        parser.push(piece)
    parser.finish()
    assert parser.message().content == "a😀b\ufffdc\ufffd"


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
