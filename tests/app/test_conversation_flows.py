"""Conversations in the whole app: listed, opened, kept."""

from pathlib import Path

import pytest
from textual.widgets import OptionList

from dsv4chat.app.presenter import ChatPresenter
from dsv4chat.app.screens.conversations_screen import ConversationsScreen
from dsv4chat.store import open_history
from tests.support.app_parts import Parts, screen_text, wait_for, wait_until
from tests.support.chat import THOUGHT, answered, chat, say, tokens_shown
from tests.support.fake_engine import Script
from tests.support.sessions import ready


async def test_conversations_are_listed_and_opened(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["a</think>Answer one.", "b</think>Answer two."]))
    async with chat(parts) as (app, pilot):
        await say(pilot, "question one")
        await answered(pilot, app)
        await pilot.press("ctrl+n")
        await wait_until(pilot, lambda: "Answer one." not in screen_text(app))
        assert "Ask something" in screen_text(app)
        await say(pilot, "question two")
        await answered(pilot, app)
        await pilot.press("ctrl+o")
        await wait_until(pilot, lambda: isinstance(app.screen, ConversationsScreen))
        options = app.screen.query_one(OptionList)
        assert options.option_count == 2
        assert "question two" in screen_text(app)
        await pilot.press("down", "enter")
        await wait_until(pilot, lambda: "Answer one." in screen_text(app))
        assert "Answer two." not in screen_text(app)


async def test_after_a_restart_the_last_conversation_is_there(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT]))) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
    async with chat(Parts(tmp_path)) as (app, pilot):
        await wait_until(pilot, lambda: "The capital is Paris." in screen_text(app))
        assert "▸ Thought · 0.1 s · 12 tokens" in screen_text(app)


async def test_quitting_in_the_middle_keeps_the_partial_answer_as_interrupted(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    parts.allow = 25
    async with chat(parts) as (app, pilot):
        await say(pilot, "Capital?")
        await wait_until(pilot, lambda: tokens_shown(app) == 25)
        await pilot.press("ctrl+q")
    assert parts.engine.closed
    history = open_history(tmp_path).repository
    talk = history.latest_conversation()
    assert talk is not None
    assert history.path(talk.active_leaf)[-1].state == "interrupted"
    history.close()
    async with chat(Parts(tmp_path)) as (app, pilot):
        await wait_until(pilot, lambda: "interrupted" in screen_text(app))


async def test_when_the_screen_itself_fails_the_answer_is_kept_and_the_engine_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    parts.allow = 25

    async def fail(self: ChatPresenter) -> bool:
        raise RuntimeError("a fault of the screen")

    with pytest.raises(RuntimeError, match="a fault of the screen"):  # noqa: PT012 - it fails at some time
        async with chat(parts) as (app, pilot):
            await say(pilot, "Capital?")
            await wait_until(pilot, lambda: tokens_shown(app) == 25)
            monkeypatch.setattr(ChatPresenter, "drain", fail)
            await pilot.pause(1.0)
    assert parts.engine.closed
    history = open_history(tmp_path).repository
    talk = history.latest_conversation()
    assert talk is not None
    answer = history.path(talk.active_leaf)[-1]
    assert (answer.state, len(answer.ids)) == ("interrupted", 25)
    history.close()


async def test_a_history_that_is_not_saved_is_marked_for_good(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with chat(Parts(tmp_path / "file" / "data", Script([THOUGHT]))) as (app, pilot):
        await wait_until(pilot, lambda: "history not saved" in screen_text(app))
        await say(pilot, "Capital?")
        await answered(pilot, app)
        assert "The capital is Paris." in screen_text(app)


async def test_an_answer_of_another_window_is_shown_once_it_is_there(tmp_path: Path) -> None:
    first = Parts(tmp_path, Script(["Hm.</think>The **whole** of it."]))
    elsewhere = await ready(first)
    first.engine.let(3)
    elsewhere.submit("go on")
    await wait_for(lambda: len(first.engine.asked) == 1)
    async with chat(Parts(tmp_path, Script([THOUGHT])), ready=False) as (app, pilot):
        await wait_until(pilot, lambda: "being written by another window" in screen_text(app))
        await say(pilot, "And now?")
        await wait_until(pilot, lambda: "after the answer that another window writes" in screen_text(app))
        first.engine.let(None)
        await answered(pilot, app, 2)
        shown = screen_text(app)
        assert "being written by another window" not in shown
        places = [shown.index(text) for text in ("The whole of it.", "And now?", "The capital is Paris.")]
        assert places == sorted(places)
    await elsewhere.close()


async def test_a_title_without_a_word_changes_nothing_and_says_so(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT]))) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
        await pilot.press("f2", "home", *["delete"] * 20, "enter")
        await wait_until(pilot, lambda: "A title needs a word" in screen_text(app))
        assert app.session is not None
        assert app.session.title == "Capital?"
