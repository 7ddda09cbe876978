"""The parser on tool calls, and everything that can be wrong with them."""

import json

import pytest

from tests.support.parsing import D, block, invoke, parameter, read

TOOLS = [
    {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {}, "days": {}}}},
    {"type": "function", "function": {"name": "clock"}},
]
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
