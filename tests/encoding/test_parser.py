"""The parser on text alone: where reasoning and answer begin and end."""

import pytest

from dsv4chat.encoding import CompletionParser, Message
from tests.support.parsing import D, invoke, read


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
