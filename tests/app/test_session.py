"""The chat without its screen: what is asked of the engine and what is written when."""

from pathlib import Path

import pytest

from dsv4chat.app.events import (
    AnswerEnded,
    ConversationShown,
    EngineLoading,
    EngineReady,
    EngineStarting,
    ModeChanged,
    Notice,
    PromptsRead,
    TitleChanged,
    TurnAdded,
)
from dsv4chat.app.tool_events import ToolsSwitched
from dsv4chat.encoding import AnswerText, Message, Profile, ReasoningText
from dsv4chat.engine_process import EngineFailed
from dsv4chat.store import ConversationSettings, Repository, open_history
from dsv4chat.turns import TurnFinished, TurnPrefill, TurnStarted, TurnToken
from tests.support.app_parts import Parts, Ticks, wait_for
from tests.support.fake_engine import Script, written_out
from tests.support.sessions import THOUGHT, ask, prompt_ids, ready


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
    loading = [EngineStarting, EngineLoading, EngineLoading, EngineLoading, EngineReady]
    first = [ConversationShown, ModeChanged, ToolsSwitched, PromptsRead, *loading]
    assert kinds[: len(first)] == first
    turn = kinds[len(first) :]
    assert turn[:5] == [TitleChanged, TurnAdded, TurnStarted, TurnPrefill, TurnPrefill]
    assert set(turn[5:-2]) == {TurnToken}
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
    assert tokens // 8 - 1 <= len(saved) <= tokens // 8
    assert all(text.startswith(content) for content in saved)
    assert len(saved[-1]) > 80


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


async def test_a_question_that_does_not_fit_is_told_and_left_out_of_later_prompts(tmp_path: Path) -> None:
    overflow = EngineFailed("ContextOverflowError", "The prompt has 9,000 tokens and the context 8,192.")
    parts = Parts(tmp_path, Script([overflow, "Hm.</think>Hello."]))
    session = await ready(parts)
    await ask(session, "much too long")
    assert session.path[-1].state == "failed"
    assert session.path[-1].error == f"{overflow} /forget leaves out the oldest turns."
    assert session.can_send
    await ask(session, "Hello")
    assert parts.engine.asked[1] == prompt_ids(parts, Message("user", "Hello"))
    await session.close()


async def test_an_uncertain_profile_is_noted(tmp_path: Path) -> None:
    session = await ready(Parts(tmp_path, notice="Nothing says which profile; using `preview`."))
    last = session.events[-1]
    assert isinstance(last, Notice)
    assert "profile" in last.sentence
    await session.close()
