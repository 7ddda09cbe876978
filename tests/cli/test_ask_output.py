"""What `ask` writes where, and that no terminal has to obey a model."""

import io
import json

import pytest

from dsv4chat.cli.ask_output import JsonOutput, TextOutput, describe_loading
from dsv4chat.encoding import AnswerText, Message, ReasoningText, Stopped, ToolCall, ToolCallEnd
from dsv4chat.runtime.protocol import Loading
from dsv4chat.turns import TurnFigures, TurnFinished, TurnPrefill, TurnToken
from dsv4chat.visible import visible


class Stream(io.TextIOWrapper):
    """A text stream that remembers, and may claim to be a terminal."""

    def __init__(self, terminal):
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)
        self.terminal = terminal

    def isatty(self):
        return self.terminal

    def text(self):
        return self.buffer.getvalue().decode("utf-8")


@pytest.fixture
def streams(monkeypatch):
    def make(out, err, colour=True):
        streams = Stream(out), Stream(err)
        monkeypatch.setattr("sys.stdout", streams[0])
        monkeypatch.setattr("sys.stderr", streams[1])
        if colour:
            monkeypatch.delenv("NO_COLOR", raising=False)
        else:
            monkeypatch.setenv("NO_COLOR", "1")
        return streams

    return make


def token(*events, kind="answer"):
    return TurnToken(0, 5, "x", kind, -0.1, 9.0, (1.0, 2.0), (), tuple(events))


def finished(*events, reason="stop", offered=None, message=None):
    return TurnFinished(
        reason,
        reason,
        message or Message("assistant", "a"),
        offered,
        TurnFigures(10, 8, 2, 3, 30.0, 20.0, 10.0, 100.0),
        (*events, Stopped(reason)),
    )


def test_thinking_is_dim_on_a_terminal_and_apart_from_the_answer(streams):
    out, err = streams(True, True)
    output = TextOutput(show_thinking=True, stats=False)
    for event in (token(ReasoningText("Hm")), token(ReasoningText("."), AnswerText("Yes")), finished()):
        output.event(event)
    assert err.text() == "\x1b[2mHm.\x1b[22m\n\n"
    assert out.text() == "Yes\n"


@pytest.mark.parametrize(("terminal", "colour"), [(False, True), (True, False)])
def test_there_is_no_colour_in_a_file_or_when_it_is_unwanted(streams, terminal, colour):
    _, err = streams(False, terminal, colour)
    output = TextOutput(show_thinking=True, stats=False)
    output.event(token(ReasoningText("Hm")))
    output.event(finished())
    assert err.text() == "Hm\n\n"


def test_thinking_can_be_hidden_but_not_the_answer_it_turns_out_to_be(streams):
    out, err = streams(True, True)
    output = TextOutput(show_thinking=False, stats=False)
    output.event(token(ReasoningText("Paris")))
    output.event(finished(offered="Paris"))
    assert (out.text(), err.text()) == ("Paris\n", "")


def test_control_characters_are_shown_on_a_terminal_and_kept_in_a_file(streams):
    for terminal, expected in ((True, "\u241b[31mred\n"), (False, "\x1b[31mred\n")):
        out, err = streams(terminal, terminal, colour=False)
        output = TextOutput(show_thinking=True, stats=False)
        output.event(token(ReasoningText("\x1b[31mred\n")))
        output.event(token(AnswerText("\x1b[31mred\n")))
        output.error("EngineDied", "bad \x1b name")
        assert out.text() == expected
        assert err.text() == expected + "\n\nError: bad \u241b name\n"


def test_progress_is_one_line_that_goes_away(streams):
    out, err = streams(True, True)
    output = TextOutput(show_thinking=True, stats=True)
    output.loading(Loading(stage="Reading"))
    output.event(TurnPrefill(256, 1000, 0))
    output.event(token(AnswerText("Yes")))
    output.event(finished(reason="length"))
    assert out.text() == "Yes\n"
    clear = "\r\x1b[K"
    assert err.text() == (
        f"{clear}Reading ...{clear}Reading the prompt: 256 of 1,000 tokens{clear}"
        "(cut off: the limit of 3 tokens was reached)\n"
        "(3 tokens, 100.0 a second; of the prompt 8 read and 2 reused; first token 30 ms)\n"
    )


def test_nothing_moves_in_a_file(streams):
    _, err = streams(False, False)
    output = TextOutput(show_thinking=True, stats=False)
    output.loading(Loading(stage="Reading"))
    output.event(TurnPrefill(256, 1000, 0))
    assert err.text() == ""


def test_a_full_context_is_told_apart_from_max_tokens(streams):
    _, err = streams(False, False)
    output = TextOutput(show_thinking=True, stats=False)
    output.context = 13
    output.event(finished(reason="length"))
    assert err.text() == "(cut off: the context of 13 tokens is full; --max-context sets it)\n"


def test_a_tool_call_is_shown(streams):
    out, _ = streams(False, False)
    output = TextOutput(show_thinking=True, stats=False)
    output.event(token(AnswerText("Look."), kind="answer"))
    output.event(token(ToolCallEnd(0, ToolCall("c", "clock", "{}")), kind="tool"))
    output.event(finished(ToolCallEnd(1, ToolCall("d", "x", "{", valid=False, error="Bad."))))
    assert out.text() == "Look.\n[calls clock({})]\n\n[calls x({)] (not valid: Bad.)\n"


def test_a_listener_that_left_standard_error_is_no_problem(streams):
    _, err = streams(False, False)
    output = TextOutput(show_thinking=True, stats=False)
    err.write = lambda _: (_ for _ in ()).throw(BrokenPipeError())
    output.notice("hello")
    JsonOutput().notice("hello")


def test_text_that_the_terminal_cannot_encode_is_replaced(monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    monkeypatch.setattr("sys.stdout", out)
    output = TextOutput(show_thinking=True, stats=False)
    output.event(token(AnswerText("né")))
    assert out.buffer.getvalue() == b"n?"


def test_json_lines_hold_the_whole_message(streams):
    out, err = streams(False, False)
    output = JsonOutput()
    call = ToolCall("call_0", "clock", "{}")
    output.event(token(AnswerText("né\x1b")))
    output.event(finished(message=Message("assistant", "né\x1b", reasoning="r", tool_calls=(call,))))
    output.error("EngineDied", "It is gone.")
    first, last, error = map(json.loads, out.text().splitlines())
    assert first == {
        "event": "token", "id": 5, "text": "x", "kind": "answer", "logprob": -0.1, "ms": 9.0, "x": [1.0, 2.0]
    }  # fmt: skip
    assert (last["content"], last["reasoning_content"]) == ("né\x1b", "r")
    assert last["tool_calls"] == [{"id": "call_0", "name": "clock", "arguments": "{}", "valid": True}]
    assert (last["prefilled"], last["reused"], last["tokens"], last["ttft_ms"]) == (8, 2, 3, 30.0)
    assert error == {"event": "error", "kind": "EngineDied", "message": "It is gone."}
    assert err.text() == "Error: It is gone.\n"
    assert "\x1b" not in out.text()


def test_loading_is_described_in_a_line():
    assert describe_loading(Loading(stage="Starting")) == "Starting ..."
    half = Loading(
        stage="Reading the weights",
        bytes_done=10_250_000,
        bytes_total=20_450_000,
        tensors_done=1500,
        tensors_total=3000,
        seconds_left=2.4,
    )
    assert describe_loading(half) == "Reading the weights: 10.2 of 20.4 MB, 1,500 of 3,000 tensors, 2 s left"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b]52;c;aGk=\x07", "\u241b]52;c;aGk=\u2407"),
        ("a\rb\x7f", "a\u240db\u2421"),
        ("\x9b31m", "<U+009B>31m"),
        ("\u202eabc\u2069", "<U+202E>abc<U+2069>"),
        ("👩\u200d💻 [b]", "👩\u200d💻 [b]"),
    ],
)
def test_control_characters_are_made_visible(text, shown):
    assert visible(text) == shown
