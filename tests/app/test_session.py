"""The chat without its screen: what is asked of the engine, what is written when, and how turns end."""

from pathlib import Path

import pytest

from dsv4chat.app import session as session_module
from dsv4chat.app.events import (
    AnswerEnded,
    ConversationShown,
    EngineDown,
    EngineLoading,
    EngineReady,
    EngineStarting,
    HistoryInMemory,
    ModeChanged,
    Notice,
    TurnAdded,
)
from dsv4chat.app.session import ChatSession
from dsv4chat.encoding import AnswerText, Conversation, EncodingError, Message, Profile, ReasoningText, render
from dsv4chat.engine_process import EngineFailed
from dsv4chat.store import ConversationSettings, Repository, open_history
from dsv4chat.turns import TurnFinished, TurnPrefill, TurnStarted, TurnToken
from tests.support.app_parts import Parts, Ticks, wait_for
from tests.support.fake_engine import Script, written_out

THOUGHT = "Let me see.</think>Paris."


async def ready(parts: Parts) -> ChatSession:
    session = parts.session()
    await session.open_history()
    session.start_engine()
    await wait_for(lambda: session.link.state in ("ready", "down"))
    return session


async def ask(session: ChatSession, text: str) -> None:
    assert session.submit(text)
    await wait_for(lambda: not session.busy)


def prompt_ids(
    parts: Parts, *messages: Message, thinking: bool = True, effort: str | None = None
) -> list[int]:
    conversation = Conversation(tuple(messages), thinking=thinking, effort=effort)
    return parts.tokenizer.encode(render(conversation, parts.text.profile)).ids


async def test_a_turn_goes_from_question_to_kept_answer(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    session = await ready(parts)
    await ask(session, "Capital of France?")
    assert parts.engine.asked == [prompt_ids(parts, Message("user", "Capital of France?"))]
    question, answer = session.path
    assert (question.role, question.content) == ("user", "Capital of France?")
    assert (answer.content, answer.reasoning, answer.state) == ("Paris.", "Let me see.", "complete")
    assert list(answer.ids) == written_out(parts.tokenizer, THOUGHT)
    await session.close()
    history = open_history(tmp_path).repository
    talk = history.latest_conversation()
    assert talk is not None
    assert talk.title == "Capital of France?"
    kept = history.path(talk.active_leaf)
    assert [(message.role, message.content, message.state) for message in kept] == [
        ("user", "Capital of France?", "complete"),
        ("assistant", "Paris.", "complete"),
    ]
    made = kept[1].generation
    assert made is not None
    assert (made.tokens, made.ttft_ms, made.reused) == (len(answer.ids), 148.0, 0)
    assert made.reasoning_tokens == len(written_out(parts.tokenizer, "Let me see.</think>"))
    figures = history.figures(kept[1].id)
    assert len(figures.residual) == len(answer.ids)
    assert figures.milliseconds[:3] == [10.0, 11.0, 12.0]
    history.close()


async def test_events_come_in_order(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["Hm.</think>Yes."]))
    session = await ready(parts)
    await ask(session, "Well?")
    kinds = [type(event) for event in session.events]
    first = [ConversationShown, EngineStarting, EngineLoading, EngineLoading, EngineLoading, EngineReady]
    assert kinds[: len(first)] == first
    turn = kinds[len(first) :]
    assert turn[:4] == [TurnAdded, TurnStarted, TurnPrefill, TurnPrefill]
    assert set(turn[4:-2]) == {TurnToken}
    assert turn[-2:] == [TurnFinished, AnswerEnded]
    said = [piece for event in session.events if isinstance(event, TurnToken) for piece in event.events]
    assert "".join(piece.text for piece in said if isinstance(piece, ReasoningText)) == "Hm."
    assert "".join(piece.text for piece in said if isinstance(piece, AnswerText)).startswith("Yes")
    await session.close()


async def test_the_question_is_on_disk_before_the_engine_is_asked(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    parts.allow = 0
    session = await ready(parts)
    session.submit("Remember me")
    await wait_for(lambda: parts.engine.asked)
    other = open_history(tmp_path).repository
    talk = other.latest_conversation()
    assert talk is not None
    assert [(message.content, message.state) for message in other.path(talk.active_leaf)] == [
        ("Remember me", "complete"),
        ("", "writing"),
    ]
    other.close()
    await session.close()


async def test_the_partial_answer_is_written_about_once_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[str] = []
    real = Repository.save_progress

    def save(self: Repository, answer: int, content: str, *rest: object) -> None:
        saved.append(content)
        real(self, answer, content, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Repository, "save_progress", save)
    text = "abcdefghijklmnopqrstuvwxyz" * 4
    parts = Parts(
        tmp_path, Script([text]), settings=ConversationSettings(thinking=False), clock=Ticks(step=0.1)
    )
    session = await ready(parts)
    await ask(session, "Go on")
    tokens = len(session.path[-1].ids)
    await session.close()
    assert tokens // 10 - 1 <= len(saved) <= tokens // 10
    assert all(text.startswith(content) for content in saved)
    assert len(saved[-1]) > 80


async def test_stop_keeps_what_was_said(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    parts.allow = 16
    session = await ready(parts)
    session.submit("Capital?")
    await wait_for(lambda: sum(isinstance(event, TurnToken) for event in session.events) == 16)
    assert session.stop()
    await wait_for(lambda: not session.busy)
    answer = session.path[-1]
    assert answer.state == "stopped"
    assert len(answer.ids) == 16
    assert answer.reasoning == "Let me see."
    assert answer.content == "Paris."[: len(answer.content)] != ""
    assert not session.stop()
    await session.close()
    history = open_history(tmp_path).repository
    assert history.message(answer.id).state == "stopped"
    assert history.message(answer.id).ids == answer.ids
    history.close()


async def test_the_next_prompt_holds_the_sampled_ids_and_drops_the_reasoning(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT, "Again.</think>Paris."]))
    session = await ready(parts)
    await ask(session, "Capital?")
    await ask(session, "Sure?")
    sampled = tuple(written_out(parts.tokenizer, THOUGHT))
    expected = prompt_ids(
        parts,
        Message("user", "Capital?"),
        Message("assistant", "Paris.", reasoning="Let me see.", ids=sampled),
        Message("user", "Sure?"),
    )
    assert parts.engine.asked[1] == expected
    assert parts.engine.conversations[0] == parts.engine.conversations[1]
    await session.close()


async def test_ids_of_another_tokenizer_are_not_reused(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["Odd</think>Paris."]))
    session = await ready(parts)
    await ask(session, "Capital?")
    await session.close()
    later = Parts(tmp_path, Script(["Sure</think>Yes."]))
    later.text = type(later.text)(later.tokenizer, "another", Profile.PREVIEW, None)
    session = await ready(later)
    assert session.path[-1].ids
    await ask(session, "Sure?")
    expected = prompt_ids(
        later,
        Message("user", "Capital?"),
        Message("assistant", "Paris.", reasoning="Odd"),
        Message("user", "Sure?"),
    )
    assert later.engine.asked == [expected]
    await session.close()


async def test_when_the_engine_dies_the_answer_so_far_is_kept_and_a_new_engine_goes_on(
    tmp_path: Path,
) -> None:
    parts = Parts(tmp_path, Script([THOUGHT, "Well.</think>Paris!"]))
    parts.allow = 16
    session = await ready(parts)
    session.submit("Capital?")
    await wait_for(lambda: sum(isinstance(event, TurnToken) for event in session.events) == 16)
    parts.engine.die()
    await wait_for(lambda: not session.busy)
    answer = session.path[-1]
    assert answer.state == "failed"
    assert answer.content
    assert "SIGKILL" in (answer.error or "")
    down = session.events[-1]
    assert isinstance(down, EngineDown)
    assert "SIGKILL" in down.sentence
    assert down.last_lines == ("last line of the log",)
    assert not session.can_send
    assert not session.submit("Hello?")
    parts.allow = None
    session.start_engine()
    await wait_for(lambda: session.can_send)
    assert len(parts.engines) == 2
    assert parts.engines[0].closed
    await ask(session, "Go on")
    assert "Paris" not in session.path[-2].content
    assert parts.engine.asked[0] == prompt_ids(
        parts,
        Message("user", "Capital?"),
        Message("assistant", answer.content, reasoning=answer.reasoning, ids=answer.ids),
        Message("user", "Go on"),
    )
    await session.close()


async def test_a_death_while_nothing_was_asked_is_noticed(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    session = await ready(parts)
    parts.engine.die()
    await session.look_after()
    assert isinstance(session.events[-1], EngineDown)
    assert session.link.state == "down"
    await session.close()


async def test_a_question_that_does_not_fit_is_told_and_left_out_of_later_prompts(tmp_path: Path) -> None:
    overflow = EngineFailed("ContextOverflowError", "The prompt has 9,000 tokens and the context 8,192.")
    parts = Parts(tmp_path, Script([overflow, "Hm.</think>Hello."]))
    session = await ready(parts)
    await ask(session, "much too long")
    assert session.path[-1].state == "failed"
    assert session.path[-1].error == "The prompt has 9,000 tokens and the context 8,192."
    assert session.can_send
    await ask(session, "Hello")
    assert parts.engine.asked[1] == prompt_ids(parts, Message("user", "Hello"))
    await session.close()


async def test_closing_in_the_middle_marks_the_answer_interrupted(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    parts.allow = 15
    session = await ready(parts)
    session.submit("Capital?")
    await wait_for(lambda: sum(isinstance(event, TurnToken) for event in session.events) == 15)
    await session.close()
    assert parts.engine.closed
    history = open_history(tmp_path).repository
    talk = history.latest_conversation()
    assert talk is not None
    answer = history.path(talk.active_leaf)[-1]
    assert answer.state == "interrupted"
    assert len(answer.ids) == 15
    history.close()


async def test_the_last_conversation_is_there_after_a_restart(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    session = await ready(parts)
    session.set_mode(False, "max")
    await ask(session, "Capital?")
    path = list(session.path)
    await session.close()
    again = Parts(tmp_path).session()
    await again.open_history()
    assert [message.id for message in again.path] == [message.id for message in path]
    assert (again.settings.thinking, again.settings.effort) == (False, "max")
    shown = again.events[0]
    assert isinstance(shown, ConversationShown)
    assert shown.path == tuple(again.path)
    await again.close()


async def test_new_and_old_conversations_are_switched_between(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["a</think>A", "b</think>B", "c</think>C"]))
    session = await ready(parts)
    await ask(session, "first")
    first = session.record
    assert first is not None
    session.new_conversation()
    await wait_for(lambda: session.record is None)
    assert session.path == []
    await ask(session, "second")
    assert [summary.title for summary in await session.summaries()] == ["second", "first"]
    session.open_conversation(first.id)
    await wait_for(lambda: session.record is not None and session.record.id == first.id)
    await ask(session, "third")
    assert [message.content for message in session.path] == ["first", "A", "third", "C"]
    assert parts.engine.conversations == [str(first.id), str(first.id + 1), str(first.id)]
    await session.close()


async def test_leaving_a_conversation_stops_its_answer_and_keeps_it(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    parts.allow = 15
    session = await ready(parts)
    session.submit("Capital?")
    await wait_for(lambda: sum(isinstance(event, TurnToken) for event in session.events) == 15)
    session.new_conversation()
    await wait_for(lambda: session.record is None)
    (summary,) = await session.summaries()
    answer = (
        await session.store.run(lambda history: history.path(history.conversation(summary.id).active_leaf))
    )[-1]
    assert answer.state == "stopped"
    await session.close()


@pytest.mark.parametrize(
    ("profile", "before", "after", "costs"),
    [
        (Profile.PREVIEW, (True, None), (True, "max"), True),
        (Profile.PREVIEW, (True, None), (True, "high"), False),
        (Profile.CURRENT, (True, None), (True, "low"), True),
        (Profile.CURRENT, (True, None), (False, None), True),
        (Profile.CURRENT, (True, "low"), (False, None), False),
    ],
)
async def test_a_change_of_mode_that_costs_a_prefill_is_told(
    tmp_path: Path,
    profile: Profile,
    before: tuple[bool, str | None],
    after: tuple[bool, str | None],
    costs: bool,
) -> None:
    settings = ConversationSettings(thinking=before[0], effort=before[1])
    parts = Parts(tmp_path, Script([THOUGHT]), profile=profile, settings=settings)
    session = await ready(parts)
    await ask(session, "What is the capital of France, please?")
    session.events.clear()
    session.set_mode(*after)
    await wait_for(lambda: len(session._tasks) == 0)
    assert isinstance(session.events[0], ModeChanged)
    told = [event.sentence for event in session.events if isinstance(event, Notice)]
    assert bool(told) == costs
    if costs:
        assert "reads" in told[0]
        assert "again" in told[0]
    await session.close()


async def test_a_change_of_mode_without_a_conversation_costs_nothing(tmp_path: Path) -> None:
    session = await ready(Parts(tmp_path))
    session.events.clear()
    session.set_mode(True, "max")
    await wait_for(lambda: len(session._tasks) == 0)
    assert [type(event) for event in session.events] == [ModeChanged]
    session.set_mode(True, "max")
    assert len(session.events) == 1
    await session.close()


async def test_a_model_that_cannot_be_loaded_is_told_in_a_sentence(tmp_path: Path) -> None:
    broken = EngineFailed("CheckpointError", "model-00002.safetensors ends too early; copy it again.")
    session = await ready(Parts(tmp_path, Script(load_error=broken)))
    down = session.events[-1]
    assert isinstance(down, EngineDown)
    assert down.sentence == "model-00002.safetensors ends too early; copy it again."
    await session.close()


async def test_a_folder_without_a_tokenizer_is_told_in_a_sentence(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    session = parts.session()

    def missing() -> None:
        raise EncodingError("There is no tokenizer.json in /models/x; copy it from the model's checkpoint.")

    session.link._read = missing  # type: ignore[assignment]
    await session.open_history()
    session.start_engine()
    await wait_for(lambda: session.link.state == "down")
    down = session.events[-1]
    assert isinstance(down, EngineDown)
    assert "tokenizer.json" in down.sentence
    await session.close()


async def test_an_uncertain_profile_is_noted(tmp_path: Path) -> None:
    session = await ready(Parts(tmp_path, notice="Nothing says which profile; using `preview`."))
    last = session.events[-1]
    assert isinstance(last, Notice)
    assert "profile" in last.sentence
    await session.close()


async def test_an_engine_that_does_not_stop_is_told_and_can_be_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "HANGS_AFTER", 0.1)
    parts = Parts(tmp_path, Script([THOUGHT, "x</think>y"]))
    parts.allow = 5
    session = await ready(parts)
    session.submit("Capital?")
    await wait_for(lambda: sum(isinstance(event, TurnToken) for event in session.events) == 5)
    parts.engine.hang = True
    session.stop()
    await wait_for(lambda: isinstance(session.events[-1], Notice))
    assert session.busy
    parts.allow = None
    session.start_engine()
    await wait_for(lambda: session.can_send)
    assert session.path[-1].role == "assistant"
    assert len(session.path[-1].ids) == 5
    await ask(session, "And now?")
    assert session.path[-1].content == "y"
    await session.close()


async def test_an_engine_that_hangs_while_loading_can_be_started_again(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(pace=60.0))
    session = parts.session()
    await session.open_history()
    session.start_engine()
    await wait_for(lambda: session.link.state == "loading")
    parts.script.pace = 0.0
    session.start_engine()
    await wait_for(lambda: session.can_send)
    assert len(parts.engines) == 2
    assert parts.engines[0].closed
    await session.close()


async def test_without_a_place_for_the_history_the_chat_works_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    parts = Parts(tmp_path / "file" / "data", Script([THOUGHT]))
    session = await ready(parts)
    told = [event for event in session.events if isinstance(event, HistoryInMemory)]
    assert len(told) == 1
    await ask(session, "Capital?")
    assert session.path[-1].content == "Paris."
    assert len(await session.summaries()) == 1
    await session.close()


async def test_when_the_disk_fills_up_the_chat_works_and_says_so(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT, "Still</think>here."]))
    session = await ready(parts)
    await ask(session, "Capital?")

    def fill(history: Repository) -> None:
        pages = history.connection.execute("PRAGMA page_count").fetchone()[0]
        history.connection.execute(f"PRAGMA max_page_count = {pages}")

    await session.store.run(fill)
    session.events.clear()
    await ask(session, "long " * 20_000)
    assert session.path[-1].content == "here."
    assert [type(event) for event in session.events].count(HistoryInMemory) == 1
    path = await session.store.run(lambda history: history.path(session.path[-1].id))
    assert [message.content[:8] for message in path] == ["Capital?", "Paris.", "long lon", "here."]
    await session.close()


async def test_a_stop_before_the_first_token_keeps_the_question(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT, "x</think>y"]))
    parts.allow = 0
    session = await ready(parts)
    session.submit("Never mind")
    await wait_for(lambda: parts.engine.asked)
    session.stop()
    await wait_for(lambda: not session.busy)
    assert session.path[-1].state == "stopped"
    assert session.path[-1].content == ""
    parts.engine.let(None)
    await ask(session, "Hello")
    assert parts.engine.asked[1] == prompt_ids(parts, Message("user", "Never mind"), Message("user", "Hello"))
    await session.close()


async def test_two_programs_go_on_with_the_same_conversation_and_nothing_is_lost(tmp_path: Path) -> None:
    first = Parts(tmp_path, Script(["a</think>A", "b</think>B"]))
    one = await ready(first)
    await ask(one, "start")
    second = Parts(tmp_path, Script(["c</think>C"]))
    other = await ready(second)
    assert [message.content for message in other.path] == ["start", "A"]
    first.engine.let(3)
    one.submit("from one")
    await wait_for(lambda: len(first.engine.asked) == 2)
    await ask(other, "from the other")
    first.engine.let(None)
    await wait_for(lambda: not one.busy)
    assert [message.content for message in one.path] == ["start", "A", "from one", "B"]
    assert [message.content for message in other.path] == ["start", "A", "from the other", "C"]
    await one.close()
    await other.close()
    history = open_history(tmp_path).repository
    assert history.siblings(one.path[2].id) == sorted([one.path[2].id, other.path[2].id])
    assert {history.message(session.path[3].id).content for session in (one, other)} == {"B", "C"}
    history.close()
