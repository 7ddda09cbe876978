"""What a person typed and decided: prompt history, drafts, approvals of tools."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dsv4chat.store import ConversationSettings, Repository, open_history, open_in_memory


@pytest.fixture
def history() -> Iterator[Repository]:
    repository = open_in_memory()
    yield repository
    repository.close()


def talks(history: Repository, count: int) -> list[int]:
    return [history.create_conversation(ConversationSettings()).id for _ in range(count)]


def test_prompts_of_all_conversations_come_newest_first_and_each_once(history: Repository) -> None:
    one, other = talks(history, 2)
    for talk, text in [(one, "first"), (other, "second"), (one, "first"), (other, " "), (one, "Firm")]:
        history.add_message(talk, None, "user", text)
    history.add_message(one, None, "assistant", "not mine")
    texts = [prompt.text for prompt in history.prompts()]
    assert texts == ["Firm", "first", "second"]
    page = history.prompts(limit=2)
    assert [prompt.text for prompt in page] == ["Firm", "first"]
    assert [prompt.text for prompt in history.prompts(before=page[-1].message)] == ["second", "first"]
    assert [prompt.text for prompt in history.prompts(beginning="fir")] == ["first"]


def test_prompts_of_deleted_messages_are_forgotten(history: Repository) -> None:
    (talk,) = talks(history, 1)
    secret = history.add_message(talk, None, "user", "secret").id
    history.delete_message(secret)
    assert history.prompts() == []


def test_unsent_text_survives_a_restart_for_each_conversation_and_a_new_one(tmp_path: Path) -> None:
    history = open_history(tmp_path).repository
    one, other = talks(history, 2)
    history.save_draft(None, "for a new one")
    history.save_draft(one, "half a\nquest\ud800")
    history.save_draft(one, "half a\nquestion")
    history.close()
    history = open_history(tmp_path).repository
    assert history.draft(None) == "for a new one"
    assert history.draft(one) == "half a\nquestion"
    assert history.draft(other) == ""
    history.save_draft(one, "")
    assert history.draft(one) == ""
    history.save_draft(other, "gone with its conversation")
    history.purge(other)
    history.save_draft(other, "too late")
    assert history.draft(other) == ""
    assert history.connection.execute("SELECT count(*) FROM draft").fetchone()[0] == 1
    history.close()


def test_approvals_of_a_conversation_go_before_those_for_everywhere(history: Repository) -> None:
    one, other = talks(history, 2)
    history.set_approval("clock", "always")
    history.set_approval("shell", "never")
    history.set_approval("clock", "never", one)
    assert history.approvals() == {"clock": "always", "shell": "never"}
    assert history.approvals(one) == {"clock": "never", "shell": "never"}
    assert history.approvals(other) == {"clock": "always", "shell": "never"}
    history.set_approval("clock", None, one)
    history.set_approval("shell", "always")
    assert history.approvals(one) == {"clock": "always", "shell": "always"}
    history.set_approval("shell", "never", one)
    history.purge(one)
    assert history.approvals() == {"clock": "always", "shell": "always"}


def test_settings_belong_to_their_conversation(history: Repository) -> None:
    one, other = talks(history, 2)
    settings = ConversationSettings("Rhyme.", False, "max", {"temperature": 0.2}, [{"name": "clock"}])
    history.update_settings(one, settings)
    assert history.conversation(one).settings == settings
    assert history.conversation(other).settings == ConversationSettings()


def test_a_title_taken_away_by_its_person_may_come_again_by_itself(history: Repository) -> None:
    (talk,) = talks(history, 1)
    history.rename(talk, "Mine")
    history.rename(talk, "")
    assert history.conversation(talk).title_by == "none"
    history.rename(talk, "From the model", "model")
    record = history.conversation(talk)
    assert (record.title, record.title_by) == ("From the model", "model")
