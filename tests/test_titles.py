"""Titles: what the model is asked, what becomes of its reply, and what there is without a model."""

from pathlib import Path
from typing import Any

import pytest

from dsv4chat.encoding import Conversation, EncodingError, Message, Profile
from dsv4chat.engine_process import EngineDied, EngineFailed
from dsv4chat.titles import LONGEST, clean_title, fallback_title, is_about, make_title, title_turn
from dsv4chat.turns import Turn
from tests.support.app_parts import small_tokenizer
from tests.support.token_sources import ScriptedSource

ASKED = Message("user", "What is the capital of France?")
ANSWERED = Conversation((ASKED, Message("assistant", "Paris.", reasoning="Easy.")), thinking=True)


def engine(says: str = "", **how: Any) -> ScriptedSource:
    return ScriptedSource(small_tokenizer(), small_tokenizer().encode_text(says), **how)


async def title(source: ScriptedSource, conversation: Conversation = ANSWERED) -> str | None:
    return await make_title(source, small_tokenizer(), Profile.PREVIEW, conversation, conversation_id="7")


async def test_the_task_follows_the_finished_turn_and_appends_one_token_to_what_was_fed() -> None:
    tokenizer = small_tokenizer()
    first = Turn(engine(), tokenizer, Profile.PREVIEW, Conversation((ASKED,), thinking=True))
    source = engine("Capital of France")
    assert await title(source) == "Capital of France"
    ((ids, sampling, name, _, _),) = source.requests
    said = [*tokenizer.encode_text("Easy."), tokenizer.think_end_id, *tokenizer.encode_text("Paris.")]
    fed = [*first.prompt_ids, *said, tokenizer.eos_id]
    assert ids[: len(fed)] == fed
    assert [tokenizer.token_text(number) for number in ids[len(fed) :]] == ["<｜title｜>"]
    assert (sampling.temperature, name) == (0, "7")


async def test_a_model_that_fails_or_does_not_end_its_title_gives_none() -> None:
    assert await title(engine("half a", fail=EngineFailed("EngineError", "It broke."))) is None
    assert await title(engine("and so on and on", reason="length")) is None
    assert await title(engine("…!?")) is None
    with pytest.raises(EngineDied):
        await title(engine("half a", fail=EngineDied("it was killed", Path("engine.log"))))


async def test_a_title_of_something_else_is_none() -> None:
    assert await title(engine("Greeting")) is None
    assert await title(engine("What is the")) is None


@pytest.mark.parametrize(
    ("title", "said", "fits"),
    [
        ("Element iron", "Which element has the symbol Fe?", True),
        ("Sum of 12 and 30", "12 + 30", True),
        ("Sum of 2 and 3", "12 + 30", False),
        ("Debugging a script", "debug this script", True),
        ("Reise nach Zürich", "Wie plane ich eine Reise nach ZÜRICH?", True),
        ("法国的首都", "法国首都是哪里？", True),
        ("问候", "法国首都是哪里？", False),
        ("Goodbye", "The tools do not help, I need a hammer", False),
        ("Chat", "Can we chat about my code?", False),
        ("What I told you", "What did I tell you?", False),
        ("The tools do not help, I need", "The tools do not help, I need a hammer", False),
        ("Capital of Peru", "Capital of Peru, please", True),
        ("Why is the sky blue", "Why is the sky blue?", True),
        ("Tell me about you", "Tell me about you!", False),
        ("Anything", "", False),
    ],
)
def test_a_title_is_about_what_was_said_if_it_shares_a_word_that_means_something(
    title: str, said: str, fits: bool
) -> None:
    assert is_about(title, [said]) == fits


def test_later_messages_count_too() -> None:
    assert is_about("Sorting lists", ["Hello!", "How do I sort a list in Python? I mean sorting."])
    assert not is_about("Anything", [])


@pytest.mark.parametrize(
    "messages",
    [(), (ASKED,), (ASKED, Message("assistant", "Par", prefix=True))],
    ids=["nothing", "a question", "an unfinished answer"],
)
async def test_without_a_finished_answer_there_is_nothing_to_give_a_title_to(
    messages: tuple[Message, ...],
) -> None:
    conversation = Conversation(messages)
    with pytest.raises(EncodingError, match="finished answer"):
        title_turn(engine(), small_tokenizer(), Profile.PREVIEW, conversation)
    assert await title(engine("T"), conversation) is None


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Capital of France", "Capital of France"),
        ('  "Capital of France."\n', "Capital of France"),
        ("# **Capital of France**\n\nIt is Paris.", "Capital of France"),
        ("Title: Sums and more", "Sums and more"),
        ("\n\n---\nSecond line counts", "Second line counts"),
        ("C++ or C#?", "C++ or C#?"),
        ("Red\x1b[31m alert\x07\u202e", "Red [31m alert"),
        ("a\tb\u200bc\ud83d", "a bc"),
        ("深度求索的模型", "深度求索的模型"),
        ("👩\u200d👩\u200d👧 at the sea", "👩\u200d👩\u200d👧 at the sea"),
        ("", None),
        (" \n ***\n…", None),
        ("\x1b\x1b", None),
    ],
)
def test_a_reply_becomes_one_harmless_line_or_nothing(reply: str, expected: str | None) -> None:
    assert clean_title(reply) == expected


def test_titles_are_short_and_cut_at_a_word() -> None:
    words = "one two three four five six seven eight nine ten eleven twelve thirteen"
    assert clean_title(words) == "one two three four five six seven eight nine ten eleven…"
    assert fallback_title(words) == "one two three four five six seven eight nine ten eleven…"
    for text in ("x" * 500, "表" * 500, "e\u0301" * 500, "a" + "👩\u200d👧" * 200, "a " * 500):
        short = fallback_title(text)
        assert len(short) <= LONGEST
        assert short.endswith("…")
        assert text.startswith(short[:-1])
        assert not short[:-1].endswith(("\u200d", "👩"))
    assert fallback_title("e\u0301" * 500)[-2] == "\u0301"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("What is the\n capital of France?", "What is the capital of France?"),
        ("```python\nprint(1)\n```", "python print(1) ```"),
        ("> quoted", "quoted"),
        ("<｜User｜> hello", "<｜User｜> hello"),
        ("\x1b]52;c;QQ==\x07 paste", "]52;c;QQ== paste"),
        ("???", ""),
        ("", ""),
    ],
)
def test_without_a_model_the_first_words_are_the_title(message: str, expected: str) -> None:
    assert fallback_title(message) == expected


def test_a_megabyte_of_text_is_no_burden() -> None:
    assert fallback_title("word " * 200_000).startswith("word word")
    assert clean_title("\n" * 1_000_000 + "too late") is None
