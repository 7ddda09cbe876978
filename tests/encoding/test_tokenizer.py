"""The tokenizer against the tokenizers library, with the real vocabulary and a small one of other ids."""

import json
import random
import time
from functools import cache
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from dsv4chat.assets import demo_path
from dsv4chat.encoding import (
    Conversation,
    EncodingError,
    Message,
    Profile,
    Segment,
    Tokenizer,
    ToolCall,
    conversation_from_request,
    render,
)
from dsv4chat.encoding.segments import Rendered
from tests.support.deepseek import REAL_TOKENIZER
from tests.support.random_chats import CONTROL, random_text
from tests.support.small_tokenizer import tokenizer_definition


@cache
def small() -> Tokenizer:
    return Tokenizer(json.dumps(tokenizer_definition()))


def test_ids_are_those_of_the_real_vocabulary(real: Tokenizer) -> None:
    assert (real.bos_id, real.eos_id, real.user_id, real.assistant_id) == (0, 1, 128803, 128804)
    assert (real.think_start_id, real.think_end_id, real.dsml_id) == (128821, 128822, 128825)
    assert real.vocab_size == 129_280
    assert len(real.control_ids) == 1283
    assert real.stop_ids == {1, 128803}


def test_ids_are_looked_up_in_a_vocabulary_of_other_ids() -> None:
    definition = tokenizer_definition()
    ids = {token["content"]: token["id"] for token in definition["added_tokens"]}
    assert small().user_id == ids["<｜User｜>"] != 128803
    conversation = Conversation((Message("user", "the <｜User｜>"),))
    rendered = render(conversation, Profile.PREVIEW)
    encoded = small().encode(rendered).ids
    assert [number for number in encoded if number in small().control_ids] == [
        ids[token] for token in ("<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<think>")
    ]
    assert small().decode(encoded) == rendered.text


def test_ordinary_text_has_the_librarys_ids(real: Tokenizer, full: tokenizers.Tokenizer) -> None:
    rng = random.Random(5)
    for _ in range(1000):
        text = random_text(rng, 12)
        if not any(token in text for token in CONTROL):
            assert real.encode_text(text) == full.encode(text, add_special_tokens=False).ids


@given(st.text(max_size=40))
@settings(max_examples=60)
def test_text_comes_back_and_holds_no_control_token(text: str) -> None:
    tokenizer = small()
    ids = tokenizer.encode_text(text)
    assert tokenizer.decode(ids) == text
    assert not tokenizer.control_ids.intersection(ids)


def test_every_control_token_pasted_by_a_user_stays_text(real: Tokenizer) -> None:
    pasted = "".join(real.token_text(number) for number in sorted(real.control_ids))
    for text in (pasted, *(real.token_text(number) for number in real.control_ids)):
        conversation = conversation_from_request({"messages": [{"role": "user", "content": text}]})
        ids = real.encode(render(conversation, Profile.PREVIEW)).ids
        assert ids[:2] == [real.bos_id, real.user_id]
        assert ids[-2:] == [real.assistant_id, real.think_start_id]
        assert not real.control_ids.intersection(ids[2:-2])
        assert real.decode(ids[2:-2]) == text


def test_decoding_equals_the_library_and_streams_exactly(real: Tokenizer, full: tokenizers.Tokenizer) -> None:
    rng = random.Random(6)
    halves = [number for number in range(3, 128_000) if "\ufffd" in real.token_text(number)]
    control = sorted(real.control_ids)
    for _ in range(2000):
        ids = [
            rng.choice(halves)
            if rng.random() < 0.5
            else rng.choice([rng.randrange(128_000), rng.choice(control)])
            for _ in range(rng.randint(0, 30))
        ]
        assert real.decode(ids) == full.decode(ids, skip_special_tokens=False)
        decoder = real.decoder()
        streamed = [decoder.push(number) for number in ids]
        assert "".join(streamed) + decoder.flush() == real.decode(ids)


def test_streaming_gives_a_character_when_it_is_complete(real: Tokenizer) -> None:
    text = "👩‍👩‍👧 東京 e\u0301"
    decoder = real.decoder()
    shown = ""
    for number in real.encode_text(text):
        shown += decoder.push(number)
        assert text.startswith(shown)
    assert (shown, decoder.flush()) == (text, "")


def test_an_unknown_id_shows_as_a_replacement_character(real: Tokenizer) -> None:
    assert real.decode([10**6, -1]) == "\ufffd\ufffd"
    assert real.decoder().push(real.vocab_size) == "\ufffd"


def test_half_surrogates_become_replacement_characters(real: Tokenizer) -> None:
    assert real.decode(real.encode_text("a\ud800b\udc00 \ud83d\ude00")) == "a\ufffdb\ufffd 😀"


def test_streaming_time_grows_with_length_only(real: Tokenizer) -> None:
    ids = real.encode_text("東京 👍🏽 hello " * 1000)

    def seconds(times: int) -> float:
        decoder, start = real.decoder(), time.process_time()
        for _ in range(times):
            for number in ids:
                decoder.push(number)
        return time.process_time() - start

    seconds(1)
    assert seconds(20) < 80 * max(min(seconds(1), seconds(1)), 0.001)


def test_neighbouring_texts_are_one_piece(real: Tokenizer) -> None:
    """The effort's prefix and the system text are one, and so are two user messages."""
    conversation = Conversation((Message("system", "s"), Message("user", "a"), Message("user", "b")))
    split = render(conversation, Profile.CURRENT)
    assert [segment.kind for segment in split.segments] == [
        "control",
        "text",
        "control",
        "text",
        *["control"] * 2,
    ]


def test_boundaries_are_the_positions_of_the_marks(real: Tokenizer) -> None:
    body = {
        "messages": [
            {"role": "system", "content": "sys"},
            {"role": "user", "content": "a"},
            {"role": "user", "content": "b"},
            {"role": "assistant", "content": "c"},
            {"role": "user", "content": "d"},
        ]
    }
    encoded = real.encode(render(conversation_from_request(body), Profile.PREVIEW))
    texts = [real.decode(encoded.ids[:end]) for end in encoded.boundaries]
    whole = "<｜begin▁of▁sentence｜>sys<｜User｜>a\n\nb<｜Assistant｜></think>c<｜end▁of▁sentence｜>"
    whole += "<｜User｜>d<｜Assistant｜><think>"
    ends = ["sys", "a\n\nb", "b<｜Assistant｜>", "sentence｜>", ">d", "d<｜Assistant｜>", "<think>"]
    assert encoded.boundaries == sorted(set(encoded.boundaries))
    assert len(texts) == len(ends)
    for text, end in zip(texts, ends, strict=True):
        assert whole.startswith(text)
        assert text.endswith(end)


D = "｜DSML｜"
CALL = ToolCall("1", "f", '{"a": "x"}')


def kept(
    message: Message, real: Tokenizer, *, tools: bool, thinking: bool = True, open_turn: bool = True
) -> list[int]:
    """What stands between <｜Assistant｜> and the end of the turn."""
    conversation = Conversation(
        (Message("user", "q"), message, *([Message("user", "n")] if open_turn else [])),
        tools=({"name": "f"},) if tools else (),
        thinking=thinking,
    )
    ids = real.encode(render(conversation, Profile.PREVIEW, open_turn=False)).ids
    start = ids.index(real.assistant_id) + 1
    return ids[start : ids.index(real.eos_id, start)]


def test_kept_ids_are_rendered_as_they_are(real: Tokenizer) -> None:
    """The ids spell the words in another way than tokenising them would."""
    reasoning, answer = [real.encode_text(c)[0] for c in "hello"], [real.encode_text(c)[0] for c in "world"]
    assert reasoning + answer != real.encode_text("helloworld")
    end, start = real.think_end_id, real.think_start_id
    whole = Message("assistant", "world", reasoning="hello", ids=(*reasoning, end, *answer))
    assert kept(whole, real, tools=True) == [start, *reasoning, end, *answer]
    assert kept(whole, real, tools=False) == [end, *answer]
    assert kept(whole, real, tools=True, thinking=False) == [end, *answer]
    assert kept(whole, real, tools=False, open_turn=False) == [start, *reasoning, end, *answer]
    chat = Message("assistant", "world", ids=tuple(answer))
    assert kept(chat, real, tools=False) == [end, *answer]
    assert kept(chat, real, tools=True) == [start, end, *answer]


def test_a_message_with_an_empty_list_of_ids_is_rendered_from_its_text(real: Tokenizer) -> None:
    assert kept(Message("assistant", "a", ids=()), real, tools=False) == [
        real.think_end_id,
        *real.encode_text("a"),
    ]


def test_kept_ids_that_never_left_the_thinking_are_closed_or_replaced_by_the_text(real: Tokenizer) -> None:
    reasoning = tuple(real.encode_text(c)[0] for c in "hello")
    cut = Message("assistant", "", reasoning="hello", ids=reasoning)
    assert kept(cut, real, tools=True) == [real.think_start_id, *reasoning, real.think_end_id]
    assert kept(cut, real, tools=False) == [real.think_end_id]
    offered = Message("assistant", "hello", reasoning="", ids=reasoning)
    assert kept(offered, real, tools=False) == [real.think_end_id, *real.encode_text("hello")]


def test_kept_ids_of_a_call_inside_the_thinking_stay_when_kept_and_are_rendered_again_when_dropped(
    real: Tokenizer, full: tokenizers.Tokenizer
) -> None:
    parameter = f'<{D}parameter name="a" string="true">x</{D}parameter>'
    invoke = f'<{D}invoke name="f">\n{parameter}\n</{D}invoke>'
    block = f"\n\n<{D}tool_calls>\n{invoke}\n</{D}tool_calls>"
    ids = tuple(full.encode("think" + block, add_special_tokens=False).ids)
    message = Message("assistant", "", reasoning="think", tool_calls=(CALL,), ids=ids)
    assert kept(message, real, tools=True) == [real.think_start_id, *ids]
    expected = full.encode("</think>" + block, add_special_tokens=False).ids
    assert kept(message, real, tools=False) == expected


def test_the_next_turn_begins_with_what_was_fed(real: Tokenizer) -> None:
    """With tools: prompt + sampled ids is a prefix of the next prompt, so the cache only grows."""
    question = (Message("user", "q"),)
    tools = ({"name": "f"},)
    first = real.encode(render(Conversation(question, tools), Profile.CURRENT)).ids
    sampled = [*(real.encode_text(c)[0] for c in "think"), real.think_end_id, *real.encode_text("answer")]
    answer = Message("assistant", "answer", reasoning="think", ids=tuple(sampled))
    following = Conversation((*question, answer, Message("user", "more")), tools)
    second = real.encode(render(following, Profile.CURRENT)).ids
    assert second[: len(first) + len(sampled)] == first + sampled
    assert second[len(first) + len(sampled)] == real.eos_id


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "There is no tokenizer.json"),
        ("", "not a usable tokenizer"),
        ("{", "not a usable tokenizer"),
        ("[]", "not a usable tokenizer"),
        ("{}", "not a usable tokenizer"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
def test_a_missing_or_damaged_tokenizer_is_a_sentence(
    tmp_path: Path, content: str | bytes | None, says: str
) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(EncodingError, match=says):
        Tokenizer.from_folder(tmp_path)


def test_a_truncated_tokenizer_is_a_sentence(tmp_path: Path) -> None:
    text = (REAL_TOKENIZER / "tokenizer.json").read_text("utf-8")
    (tmp_path / "tokenizer.json").write_text(text[: len(text) // 2], "utf-8")
    with pytest.raises(EncodingError, match="not a usable tokenizer"):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize(
    "missing", ["<｜begin▁of▁sentence｜>", "<｜User｜>", "<think>", "</think>", "｜DSML｜"]
)
def test_a_foreign_tokenizer_without_a_control_token_is_refused_by_name(missing: str) -> None:
    definition = tokenizer_definition()
    definition["added_tokens"] = [t for t in definition["added_tokens"] if t["content"] != missing]
    with pytest.raises(EncodingError, match=f"no token {missing}"):
        Tokenizer(json.dumps(definition))


def test_a_task_token_the_vocabulary_lacks_is_refused_when_it_is_used() -> None:
    definition = tokenizer_definition()
    definition["added_tokens"] = [t for t in definition["added_tokens"] if t["content"] != "<｜title｜>"]
    tokenizer = Tokenizer(json.dumps(definition))
    with pytest.raises(EncodingError, match="no token <｜title｜>"):
        tokenizer.encode(Rendered((Segment("control", "<｜title｜>"),), ()))


def test_a_tokenizer_that_cannot_spell_every_byte_is_refused() -> None:
    definition = tokenizer_definition()
    del definition["model"]["vocab"]["a"]
    definition["model"]["merges"] = [m for m in definition["model"]["merges"] if "a" not in m]
    with pytest.raises(EncodingError, match="256 bytes"):
        Tokenizer(json.dumps(definition))


def test_the_demo_models_tokenizer_renders_every_golden_prompt() -> None:
    tokenizer = Tokenizer.from_folder(demo_path())
    cases = json.loads((Path(__file__).parents[1] / "data" / "prompts.json").read_text("utf-8"))["cases"]
    for case in cases:
        rendered = render(conversation_from_request(case["request"]), Profile.PREVIEW)
        ids = tokenizer.encode(rendered).ids
        assert tokenizer.decode(ids) == case["preview"]
        controls = [segment.text for segment in rendered.segments if segment.kind == "control"]
        assert [tokenizer.token_text(i) for i in ids if i in tokenizer.control_ids] == controls
