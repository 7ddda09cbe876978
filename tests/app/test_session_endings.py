"""How turns end: stopped, the engine gone, the program closed."""

from pathlib import Path

import pytest

from dsv4chat.app import session as session_module
from dsv4chat.app.events import EngineDown, EngineHangs, TurnStopping
from dsv4chat.encoding import EncodingError, Message
from dsv4chat.engine_process import EngineFailed
from dsv4chat.store import open_history
from dsv4chat.turns import TurnToken
from tests.support.app_parts import Parts, wait_for
from tests.support.fake_engine import Script
from tests.support.sessions import THOUGHT, ask, prompt_ids, ready


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
    assert answer.error == "The engine ended before the answer did."
    assert "SIGKILL" in next(event.sentence for event in session.events if isinstance(event, EngineDown))
    down = session.events[-1]
    assert isinstance(down, EngineDown)
    assert "SIGKILL" in down.sentence
    assert down.last_lines == ("last line of the log",)
    assert not session.can_send
    parts.allow = None
    assert not session.submit("Hello?")  # and starts another engine
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
    assert session.events[-1] == TurnStopping()
    await wait_for(lambda: isinstance(session.events[-1], EngineHangs))
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
