"""Branches: edited questions, other answers, the way between them, deleting with undo, pages of a path."""

import pytest

from dsv4chat.encoding import ToolCall
from dsv4chat.store import (
    Branch,
    ConversationSettings,
    GenerationRecord,
    Repository,
    StoreError,
    StoreMissing,
    TokenFigures,
)

MADE = GenerationRecord(model="demo", tokenizer="abc", profile="preview", layers=1)


@pytest.fixture
def talk(history: Repository) -> int:
    return history.create_conversation(ConversationSettings()).id


def say(history: Repository, talk: int, parent: int | None, *texts: str) -> list[int]:
    """Messages one under the other, by turns from user and assistant."""
    made: list[int] = []
    for number, text in enumerate(texts):
        parent = history.add_message(talk, parent, ("user", "assistant")[number % 2], text).id
        made.append(parent)
    return made


def shown(history: Repository, talk: int) -> list[str]:
    return [message.content for message in history.path(history.conversation(talk).active_leaf)]


def tokens(*ids: int) -> TokenFigures:
    made = TokenFigures()
    for number in ids:
        made.add(number, "answer", 1.0, -0.5 * number, [float(number)])
    return made


def test_an_edited_question_is_a_branch_of_its_own_and_the_old_one_stays(
    history: Repository, talk: int
) -> None:
    first, answer, second, _ = say(history, talk, None, "a", "b", "c", "d")
    edited = history.edit(second, "C")
    assert (edited.parent, edited.role) == (answer, "user")
    assert shown(history, talk) == ["a", "b", "C"]
    assert history.branches([first, answer, edited.id]) == {edited.id: Branch(1, (second, edited.id))}
    start = history.edit(first, "A")
    assert shown(history, talk) == ["A"]
    assert history.branches([start.id]) == {start.id: Branch(1, (first, start.id))}


def test_another_answer_stands_beside_the_old_one(history: Repository, talk: int) -> None:
    question, answer = say(history, talk, None, "q", "left")
    again = history.begin_answer(talk, question, MADE, thinking=False, effort=None).id
    history.finish_answer(again, "complete", "right", None, 0, tokens(1), MADE)
    assert shown(history, talk) == ["q", "right"]
    assert history.branches([question, again])[again] == Branch(1, (answer, again))


def test_switching_leads_back_to_where_one_was_in_each_branch(history: Repository, talk: int) -> None:
    question, left = say(history, talk, None, "q", "left")
    deep, _ = say(history, talk, left, "deep", "deep answer")
    other, _ = say(history, talk, left, "other", "other answer")
    history.switch(deep)
    assert shown(history, talk) == ["q", "left", "deep", "deep answer"]
    (right,) = say(history, talk, question, "right")
    assert shown(history, talk) == ["q", "right"]
    leaf = history.switch(left)
    assert shown(history, talk) == ["q", "left", "deep", "deep answer"]
    assert history.conversation(talk).active_leaf == leaf
    history.switch(other)
    history.switch(right)
    history.switch(left)
    assert shown(history, talk)[2:] == ["other", "other answer"]


def test_a_deleted_message_takes_what_follows_along_and_undo_brings_all_back(
    history: Repository, talk: int
) -> None:
    _, left, deep, _ = say(history, talk, None, "q", "zebra left", "zebra deep", "zebra end")
    deleted = history.delete_message(left)
    assert deleted.messages == 3
    assert shown(history, talk) == ["q"]
    assert history.search("zebra") == []
    assert history.summaries()[0].messages == 1
    history.restore_message(deleted)
    assert shown(history, talk) == ["q", "zebra left", "zebra deep", "zebra end"]
    assert len(history.search("zebra")) == 3
    assert history.siblings(deep) == [deep]


@pytest.mark.parametrize(("gone", "beside"), [(0, 1), (1, 0), (2, 1)])
def test_after_deleting_a_branch_the_one_beside_it_is_shown(
    history: Repository, talk: int, gone: int, beside: int
) -> None:
    (question,) = say(history, talk, None, "q")
    branches = [say(history, talk, question, f"b{number}", f"u{number}") for number in range(3)]
    history.switch(branches[gone][0])
    history.delete_message(branches[gone][0])
    assert shown(history, talk) == ["q", f"b{beside}", f"u{beside}"]
    left = [branch[0] for number, branch in enumerate(branches) if number != gone]
    assert history.siblings(left[0]) == left


def test_deleting_what_is_not_shown_changes_nothing_on_the_screen(history: Repository, talk: int) -> None:
    (question,) = say(history, talk, None, "q")
    (left,) = say(history, talk, question, "left")
    say(history, talk, question, "right")
    history.delete_message(left)
    assert shown(history, talk) == ["q", "right"]


def test_deleting_the_first_message_leaves_an_empty_conversation(history: Repository, talk: int) -> None:
    first, _ = say(history, talk, None, "a", "b")
    deleted = history.delete_message(first)
    assert history.conversation(talk).active_leaf is None
    assert history.summaries() == []
    history.restore_message(deleted)
    assert shown(history, talk) == ["a", "b"]


def test_undo_in_any_order_brings_back_what_stands_above(history: Repository, talk: int) -> None:
    _, answer, second, third = say(history, talk, None, "a", "b", "c", "d")
    inner = history.delete_message(third)
    outer = history.delete_message(answer)
    assert (inner.messages, outer.messages) == (1, 2)
    history.restore_message(inner)
    assert shown(history, talk) == ["a", "b", "c", "d"]
    assert history.siblings(second) == [second]


def test_writing_under_something_deleted_brings_it_back(history: Repository, talk: int) -> None:
    first, answer = say(history, talk, None, "a", "b")
    history.delete_message(first)
    history.delete(talk)
    history.add_message(talk, answer, "user", "c")
    assert shown(history, talk) == ["a", "b", "c"]
    assert [line.id for line in history.summaries()] == [talk]


def test_writing_to_what_is_gone_for_good_is_refused(history: Repository, talk: int) -> None:
    first, _ = say(history, talk, None, "a", "b")
    other = history.create_conversation(ConversationSettings()).id
    with pytest.raises(StoreMissing):
        history.add_message(other, first, "user", "under a message of another conversation")
    history.purge(talk)
    with pytest.raises(StoreMissing):
        history.add_message(talk, None, "user", "x")
    for ask in (history.message, history.switch, history.delete_message, history.newest_leaf):
        with pytest.raises(StoreMissing):
            ask(first)


def test_what_was_deleted_long_ago_is_removed_for_good_and_the_rest_stays(
    history: Repository, talk: int
) -> None:
    question, old, _ = say(history, talk, None, "q", "old zebra", "below")
    (kept,) = say(history, talk, question, "kept zebra")
    lost = history.create_conversation(ConversationSettings()).id
    say(history, lost, None, "lost zebra")
    history.delete_message(old)
    history.delete(lost)
    late = history.clock() + 1
    later = history.create_conversation(ConversationSettings()).id
    say(history, later, None, "later zebra")
    history.delete(later)
    assert history.purge_deleted(late) == 3
    assert history.purge_deleted(late) == 0
    with pytest.raises(StoreMissing):
        history.conversation(lost)
    with pytest.raises(StoreMissing):
        history.message(old)
    history.restore(later)
    assert {found.excerpt for found in history.search("zebra")} == {"kept zebra", "later zebra"}
    left = history.connection.execute("SELECT count(*) FROM message_text").fetchone()[0]
    assert left == history.connection.execute("SELECT count(*) FROM message").fetchone()[0]
    assert history.conversation(talk).active_leaf == kept


def test_a_long_path_is_read_in_pages_from_its_end(history: Repository, talk: int) -> None:
    ids = say(history, talk, None, *(f"m{number}" for number in range(50)))
    assert history.path_ids(ids[-1]) == ids
    page = history.path(ids[-1], last=20)
    assert [message.id for message in page] == ids[30:]
    earlier = history.path(page[0].parent, last=20)
    assert [message.id for message in earlier] == ids[10:30]
    first = history.path(earlier[0].parent, last=20)
    assert [message.content for message in first] == [f"m{number}" for number in range(10)]
    assert history.path(first[0].parent, last=20) == []
    assert [message.id for message in history.messages([ids[3], ids[1]])] == [ids[3], ids[1]]


def test_a_stopped_answer_is_continued_with_its_tokens(history: Repository, talk: int) -> None:
    (question,) = say(history, talk, None, "q")
    answer = history.begin_answer(talk, question, MADE, thinking=False, effort=None).id
    with pytest.raises(StoreError, match="ended"):
        history.resume_answer(answer)
    history.finish_answer(answer, "stopped", "Once upon", None, 0, tokens(1, 2), MADE)
    resumed = history.resume_answer(answer)
    assert (resumed.state, resumed.content, resumed.ids) == ("writing", "Once upon", (1, 2))
    history.save_progress(answer, "Once upon a", None, 2, tokens(3))
    history.finish_answer(answer, "complete", "Once upon a zebra", None, 3, tokens(4), MADE)
    done = history.message(answer)
    assert (done.state, done.ids) == ("complete", (1, 2, 3, 4))
    assert [found.message for found in history.search("zebra")] == [answer]
    with pytest.raises(StoreError):
        history.resume_answer(question)


def test_figures_are_read_for_a_range_of_tokens(history: Repository, talk: int) -> None:
    (question,) = say(history, talk, None, "q")
    answer = history.begin_answer(talk, question, MADE, thinking=False, effort=None).id
    for start in range(0, 30, 5):
        history.save_progress(answer, "x", None, start, tokens(*range(start, start + 5)))
    for start, end in [(0, 30), (0, 1), (3, 12), (5, 10), (7, 8), (29, 40), (30, 40), (0, 0)]:
        part = history.figures(answer, start, end)
        assert part.ids == list(range(30))[start:end]
        assert part.residual == [[float(number)] for number in part.ids]
    assert history.logprobs(answer) == [-0.5 * number for number in range(30)]
    assert history.logprobs(question) == []


def test_what_was_decided_about_a_call_stays_with_it(history: Repository, talk: int) -> None:
    calls = (ToolCall("c1", "clock", "{}"), ToolCall("c2", "calculator", "{}"))
    message = history.add_message(talk, None, "assistant", "", tool_calls=calls).id
    assert history.message(message).approvals == (None, None)
    history.decide_call(message, 1, "once")
    assert history.message(message).approvals == (None, "once")
    with pytest.raises(StoreMissing):
        history.decide_call(message, 2, "never")
