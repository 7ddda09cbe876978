"""The parser on ids: control tokens by id, text that only looks like them as text, split characters."""

import json
import random

import pytest
import tokenizers

from dsv4chat.encoding import CompletionParser, Event, Message, Tokenizer
from dsv4chat.encoding.events import joined
from tests.support.parsing import D, check_consistent
from tests.support.random_completions import random_completion

VALUE = "cat </dev/null 2>&1 👩‍👩‍👧"
CALL = (
    f'\n\n<{D}tool_calls>\n<{D}invoke name="f">\n<{D}parameter name="p" string="true">{VALUE}'
    f"</{D}parameter>\n</{D}invoke>\n</{D}tool_calls>"
)


def feed(ids: list[int], tokenizer: Tokenizer, thinking: bool = True) -> tuple[CompletionParser, list[Event]]:
    """As the application does it: each id with the text it completes."""
    parser, decoder = CompletionParser(thinking, tokenizer=tokenizer), tokenizer.decoder()
    events = [event for number in ids for event in parser.push(decoder.push(number), number)]
    events += parser.finish(tail=decoder.flush())
    check_consistent(parser, events)
    return parser, joined(events)


def sampled(text: str, full: tokenizers.Tokenizer) -> list[int]:
    """Ids of `text` in which every spelled control token is one."""
    return list(full.encode(text, add_special_tokens=False).ids)


def test_a_turn_with_a_call_is_read_from_ids(real: Tokenizer, full: tokenizers.Tokenizer) -> None:
    ids = sampled("thinking 你好</think>Let me see 👍🏽." + CALL, full)
    parser, _ = feed(ids, real)
    message = parser.message()
    assert (message.reasoning, message.content) == ("thinking 你好", "Let me see 👍🏽.")
    (call,) = message.tool_calls
    assert json.loads(call.arguments) == {"p": VALUE}
    assert message.ids == tuple(ids)
    assert parser.finish_reason == "tool_calls"


@pytest.mark.parametrize("text", ["r</think>a" + CALL, "r<think>x</think>a<｜end▁of▁sentence｜>b<｜User｜>c"])
def test_ordinary_text_that_looks_like_control_tokens_is_text(text: str, real: Tokenizer) -> None:
    parser, _ = feed(real.encode_text(text), real)
    assert (parser.message().reasoning, parser.message().content) == (text, "")
    parser, _ = feed(real.encode_text(text), real, thinking=False)
    assert (parser.message().content, parser.message().tool_calls) == (text, ())


def test_no_control_id_is_ever_shown(real: Tokenizer, full: tokenizers.Tokenizer) -> None:
    """Every control token of the vocabulary, between words, in the reasoning and in the answer."""
    for number in sorted(real.control_ids - real.stop_ids):
        name = real.token_text(number)
        for before, after in (("r", "</think>a"), ("r</think>a", "b")):
            parser, _ = feed([*sampled(before, full), number, *sampled(after, full)], real)
            message = parser.message()
            assert name not in (message.reasoning or "") + message.content
            shown = (message.reasoning or "") + "|" + message.content
            assert shown.replace("|", "") == (before + after).replace("</think>", ""), name


@pytest.mark.parametrize("stop", ["<｜end▁of▁sentence｜>", "<｜User｜>"])
def test_a_sampled_stop_token_ends_the_message(
    stop: str, real: Tokenizer, full: tokenizers.Tokenizer
) -> None:
    ids = sampled("r</think>a", full)
    parser, _ = feed([*ids, real.control_id(stop), *sampled("more", full)], real)
    assert (parser.message().content, parser.message().ids) == ("a", tuple(ids))


def test_a_character_that_never_becomes_complete_shows_once(
    real: Tokenizer, full: tokenizers.Tokenizer
) -> None:
    half = real.encode_text("👩‍👩‍👧")[:1]
    assert "\ufffd" in real.decode(half)
    parser, _ = feed([*half, real.think_end_id, *sampled("a", full), *half], real)
    assert (parser.message().reasoning, parser.message().content) == (
        real.decode(half),
        "a" + real.decode(half),
    )


def test_a_call_cut_off_inside_its_opening_is_no_text(real: Tokenizer, full: tokenizers.Tokenizer) -> None:
    parser, _ = feed(sampled(f"r</think>a\n\n<{D}tool_ca", full), real)
    assert parser.message().content == "a"
    assert [call.valid for call in parser.message().tool_calls] == [False]


def test_well_formed_completions_give_the_same_events_by_ids_as_by_text(
    real: Tokenizer, full: tokenizers.Tokenizer
) -> None:
    checked = 0
    for seed in range(400):
        completion = random_completion(random.Random(seed))
        # `<think>` is text without ids and a control token with them; half a token's text has no ids.
        if completion.comparable and "<think>" not in completion.text and "<｜User｜>" not in completion.text:
            parser = CompletionParser(completion.thinking)
            by_text = joined([*parser.push(completion.text), *parser.finish()])
            _, by_ids = feed(sampled(completion.text, full), real, completion.thinking)
            assert by_ids == by_text, repr(completion.text)
            checked += 1
    assert checked > 80


def test_a_turn_stopped_right_after_its_thinking_goes_on_as_answer(real: Tokenizer) -> None:
    ids = (*real.encode_text("r"), real.think_end_id)
    parser = CompletionParser(
        True, tokenizer=real, prefix=Message("assistant", "", reasoning="r", ids=ids, prefix=True)
    )
    for number in real.encode_text("\n\na"):
        parser.push(real.token_text(number), number)
    assert (parser.message().reasoning, parser.message().content) == ("", "a")


def test_message_has_no_ids_when_a_piece_came_without_one(real: Tokenizer) -> None:
    parser = CompletionParser(False, tokenizer=real)
    parser.push("a", real.encode_text("a")[0])
    assert parser.message().ids is not None
    parser.push("b")
    assert parser.message() == Message("assistant", "ab")
