"""Conversations and messages go into the history and come out the same, as trees with an active branch."""

import math
import struct

import pytest

from dsv4chat.encoding import ToolCall
from dsv4chat.runtime.protocol import Alternative
from dsv4chat.store import (
    ConversationSettings,
    GenerationRecord,
    Repository,
    StoreDamaged,
    StoreMissing,
    TokenFigures,
)

MADE = GenerationRecord(model="demo", tokenizer="abc", profile="preview", layers=3)


def figures(*ids: int, alternatives: bool = False) -> TokenFigures:
    made = TokenFigures()
    for number in ids:
        options = [Alternative(id=number, text="a", logprob=-0.5)] if alternatives else []
        made.add(number, "answer", 1.5 * number, -0.25 * number, [0.5, 300.0, 70000.0], options)
    return made


def test_conversation_settings_come_back_as_given(history: Repository) -> None:
    settings = ConversationSettings("Be brief.", False, "max", {"temperature": 0.5}, [{"name": "clock"}])
    made = history.create_conversation(settings)
    assert history.conversation(made.id).settings == settings


def test_active_leaf_follows_the_newest_message_and_path_leads_to_it(history: Repository) -> None:
    talk = history.create_conversation(ConversationSettings()).id
    first = history.add_message(talk, None, "user", "one")
    second = history.add_message(talk, first.id, "assistant", "two", reasoning="why")
    assert history.conversation(talk).active_leaf == second.id
    path = history.path(second.id)
    assert [(message.role, message.content, message.reasoning) for message in path] == [
        ("user", "one", None),
        ("assistant", "two", "why"),
    ]


def test_branches_are_siblings_and_the_active_one_is_kept(history: Repository) -> None:
    talk = history.create_conversation(ConversationSettings()).id
    question = history.add_message(talk, None, "user", "q").id
    left = history.add_message(talk, question, "assistant", "left").id
    under_left = history.add_message(talk, left, "user", "more").id
    right = history.add_message(talk, question, "assistant", "right").id
    assert history.siblings(left) == history.siblings(right) == [left, right]
    assert history.newest_leaf(left) == under_left
    history.activate(talk, under_left)
    leaf = history.conversation(talk).active_leaf
    assert [message.content for message in history.path(leaf)] == ["q", "left", "more"]


def test_first_messages_are_branches_of_their_own_conversation_only(history: Repository) -> None:
    one, other = (history.create_conversation(ConversationSettings()).id for _ in range(2))
    first = history.add_message(one, None, "user", "a").id
    history.add_message(other, None, "user", "b")
    edited = history.add_message(one, None, "user", "a, edited").id
    assert history.siblings(first) == [first, edited]


def test_answer_grows_piece_by_piece_and_keeps_ids_figures_and_calls(history: Repository) -> None:
    talk = history.create_conversation(ConversationSettings()).id
    user = history.add_message(talk, None, "user", "q").id
    answer = history.begin_answer(talk, user, MADE, thinking=True, effort="high").id
    assert history.message(answer).state == "writing"
    history.save_progress(answer, "Hel", "hm", 0, figures(7, 8))
    history.save_progress(answer, "Hello", "hm", 2, figures(9))
    calls = (ToolCall("c1", "clock", "{}"), ToolCall("c2", "nope", "{", valid=False, error="not JSON"))
    done = GenerationRecord("demo", "abc", "preview", 3, tokens=4, reused=1, prefilled=2, ttft_ms=12.5)
    history.finish_answer(answer, "stopped", "Hello!", "hm", 3, figures(10), done, tool_calls=calls)
    message = history.message(answer)
    assert (message.content, message.reasoning, message.state) == ("Hello!", "hm", "stopped")
    assert message.ids == (7, 8, 9, 10)
    assert message.tool_calls == calls
    assert message.generation == done
    assert (message.thinking, message.effort) == (True, "high")
    kept = history.figures(answer)
    assert kept.ids == [7, 8, 9, 10]
    assert kept.kinds == ["answer"] * 4
    assert kept.milliseconds == [10.5, 12.0, 13.5, 15.0]
    assert kept.logprobs == [-1.75, -2.0, -2.25, -2.5]


def test_residual_is_kept_to_bfloat16_precision(history: Repository) -> None:
    talk = history.create_conversation(ConversationSettings()).id
    user = history.add_message(talk, None, "user", "q").id
    values = [[1e-6, 3.14159, 7.0e4], [0.0, 1.0, 2.5e9], [math.pi * 1000, 255.0, 257.0]]
    new = TokenFigures()
    for row in values:
        new.add(1, "reasoning", 1.0, -1.0, row)
    answer = history.begin_answer(talk, user, MADE, thinking=True, effort=None).id
    history.save_progress(answer, "", "", 0, new)
    for row, kept in zip(values, history.figures(answer).residual, strict=True):
        for value, back in zip(row, kept, strict=True):
            assert abs(back - value) <= abs(value) / 256
            assert struct.unpack("<I", struct.pack("<f", back))[0] & 0xFFFF == 0


def test_alternatives_come_back_and_a_token_without_figures_of_layers_is_padded(history: Repository) -> None:
    talk = history.create_conversation(ConversationSettings()).id
    user = history.add_message(talk, None, "user", "q").id
    answer = history.begin_answer(talk, user, MADE, thinking=False, effort=None).id
    new = figures(1, alternatives=True)
    new.add(2, "tool", 1.0, -1.0)
    history.save_progress(answer, "x", None, 0, new)
    kept = history.figures(answer)
    assert kept.alternatives == [[Alternative(id=1, text="a", logprob=-0.5)], []]
    assert kept.residual[1] == [0.0, 0.0, 0.0]
    assert kept.kinds == ["answer", "tool"]


def test_a_gap_in_the_tokens_is_refused_and_changes_nothing(history: Repository) -> None:
    talk = history.create_conversation(ConversationSettings()).id
    user = history.add_message(talk, None, "user", "q").id
    answer = history.begin_answer(talk, user, MADE, thinking=False, effort=None).id
    history.save_progress(answer, "a", None, 0, figures(1))
    with pytest.raises(StoreDamaged, match="missing"):
        history.save_progress(answer, "abc", None, 2, figures(3))
    assert history.message(answer).content == "a"
    assert history.figures(answer).ids == [1]


def test_deleted_conversations_are_hidden_until_restored_and_gone_after_purge(history: Repository) -> None:
    talk = history.create_conversation(ConversationSettings()).id
    history.add_message(talk, None, "user", "remember the zebra")
    history.delete(talk)
    assert history.summaries() == []
    assert history.latest_conversation() is None
    assert history.search("zebra") == []
    history.restore(talk)
    assert [summary.id for summary in history.summaries()] == [talk]
    assert [found.conversation for found in history.search("zebra")] == [talk]
    history.purge(talk)
    assert history.search("zebra") == []
    with pytest.raises(StoreMissing):
        history.conversation(talk)


def test_summaries_leave_out_empty_conversations_and_put_the_last_used_first(history: Repository) -> None:
    first = history.create_conversation(ConversationSettings()).id
    second = history.create_conversation(ConversationSettings()).id
    history.create_conversation(ConversationSettings())
    history.add_message(second, None, "user", "second")
    history.add_message(first, None, "user", "first")
    assert [(line.id, line.preview, line.messages) for line in history.summaries()] == [
        (first, "first", 1),
        (second, "second", 1),
    ]


def test_a_title_given_by_a_person_stays(history: Repository) -> None:
    talk = history.create_conversation(ConversationSettings()).id
    history.rename(talk, "From text", "text")
    history.rename(talk, "Mine")
    history.rename(talk, "From the model", "model")
    made = history.conversation(talk)
    assert (made.title, made.title_by) == ("Mine", "person")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("kitten", {"cats"}),
        ("kit", {"cats"}),
        ("cafe", {"cats"}),
        ("深度", {"chinese"}),
        ("求索", {"chinese"}),
        ("forty", {"thoughts"}),
        ("kitten dog", set()),
        ('") OR (', set()),
        ("NOT *", {"thoughts"}),
        ("", set()),
        ("!!!", set()),
        ("a-b:c^d", {"odd"}),
    ],
)
def test_search_finds_words_beginnings_thoughts_and_cjk(
    history: Repository, asked: str, expected: set[str]
) -> None:
    texts = {
        "cats": ("A kitten in a café", None),
        "chinese": ("我们讨论深度求索的模型", None),
        "thoughts": ("The answer", "forty-two minus nothing"),
        "odd": ("see a-b:c^d there", None),
    }
    names = {}
    for name, (content, reasoning) in texts.items():
        talk = history.create_conversation(ConversationSettings()).id
        names[talk] = name
        history.add_message(talk, None, "assistant", content, reasoning=reasoning)
    assert {names[found.conversation] for found in history.search(asked)} == expected


def test_half_surrogate_pairs_do_not_stop_anything(history: Repository) -> None:
    talk = history.create_conversation(ConversationSettings(system="\ud800")).id
    user = history.add_message(talk, None, "user", "a\ud83d b").id
    history.rename(talk, "\udfff")
    answer = history.begin_answer(talk, user, MADE, thinking=True, effort=None).id
    history.save_progress(answer, "\ud83d", "\ud83d", 0, figures(1))
    calls = (ToolCall("1", "\ud800", '"\ud800"'),)
    history.finish_answer(answer, "complete", "c\ud83d", "\ud83d\ude00", 1, figures(), MADE, tool_calls=calls)
    question, reply = history.path(answer)
    assert question.content == "a\ufffd b"
    assert (reply.content, reply.reasoning) == ("c\ufffd", "\U0001f600")


def test_an_answer_becomes_findable_when_it_is_finished(history: Repository) -> None:
    talk = history.create_conversation(ConversationSettings()).id
    user = history.add_message(talk, None, "user", "q").id
    answer = history.begin_answer(talk, user, MADE, thinking=False, effort=None).id
    history.save_progress(answer, "the walrus", None, 0, figures(1))
    assert history.search("walrus") == []
    history.finish_answer(answer, "complete", "the walrus sings", None, 1, figures(2), MADE)
    found = history.search("walrus")
    assert [(hit.message, hit.excerpt) for hit in found] == [(answer, "the walrus sings")]
