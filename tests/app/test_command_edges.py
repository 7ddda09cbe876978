"""Commands where there is nothing for them to act on, and those of the model: what they say and do."""

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.theme import Theme

from dsv4chat.app.app import ChatApp
from dsv4chat.app.screens.approvals_screen import ApprovalsScreen
from dsv4chat.app.screens.chat_screen import ChatScreen
from dsv4chat.app.screens.effort_screen import EffortScreen
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.app.widgets.title_bar import TitleBar
from dsv4chat.store import Repository, StoreError
from tests.support.app_parts import Parts, wait_until
from tests.support.chat import THOUGHT, answered, chat, one, say
from tests.support.fake_engine import Script


async def command(pilot: Pilot[None], text: str) -> None:
    """Type a command without its completion getting in the way."""
    pilot.app.screen.query_one(Composer).insert(text)
    await pilot.pause()
    await pilot.press("escape", "enter")
    await pilot.pause()


def told(app: ChatApp, words: str) -> bool:
    return any(words in notice.message for notice in app._notifications)


async def test_an_empty_conversation_has_nothing_for_a_command_to_act_on(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    async with chat(parts) as (app, pilot):
        for typed, words in (
            ("/rename A title", "no title before its first message"),
            ("/export", "nothing to export yet"),
            ("/delete", "This conversation is empty."),
            ("/copy", "no answer to copy yet"),
            ("/code", "no code block"),
            ("/branch", "no branches here"),
            ("/forget soon", "a number of turns, not 'soon'"),
        ):
            await command(pilot, typed)
            await wait_until(pilot, lambda words=words: told(app, words), typed)
        assert app.session is not None
        assert await app.session.store.run(lambda history: history.latest_conversation()) is None
        assert not parts.engine.asked


async def test_a_conversation_deleted_whole_comes_back_whole(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT]))) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
        await command(pilot, "/rename The capital")
        await wait_until(pilot, lambda: one(app, TitleBar).title == "The capital")
        await command(pilot, "/delete")
        await wait_until(pilot, lambda: told(app, "/undo brings it back"))
        assert app.session is not None
        assert app.session.path == []
        assert await app.session.store.run(lambda history: history.latest_conversation()) is None
        await command(pilot, "/undo")
        await wait_until(pilot, lambda: one(app, TitleBar).title == "The capital")
        assert [record.content for record in app.session.path] == ["Capital?", "The capital is **Paris**."]


async def test_deleted_conversations_come_back_one_after_the_other_whatever_is_open(tmp_path: Path) -> None:
    answers = ["x</think>One.", "x</think>Two.", "x</think>Three."]
    async with chat(Parts(tmp_path, Script(answers))) as (app, pilot):
        session = app.session
        assert session is not None

        async def shown(*contents: str) -> None:
            await wait_until(pilot, lambda: [r.content for r in session.path] == [*contents], str(contents))

        for question in ("first", "second"):
            await say(pilot, question)
            await answered(pilot, app)
            await command(pilot, "/delete")
            await wait_until(pilot, lambda: session.record is None and told(app, "/undo brings it back"))
            app.clear_notifications()
        await say(pilot, "third")
        await answered(pilot, app)
        session.tree.delete(session.path[-1].id)
        await shown("third")
        # What was deleted in the open conversation goes first.
        await command(pilot, "/undo")
        await shown("third", "Three.")
        await command(pilot, "/undo")
        await shown("second", "Two.")
        await command(pilot, "/new")
        await shown()
        await command(pilot, "/undo")
        await shown("first", "One.")
        assert len(await session.summaries()) == 3
        await command(pilot, "/undo")
        await wait_until(pilot, lambda: told(app, "There is nothing to bring back."))
        await command(pilot, "/new")
        await shown()
        app.clear_notifications()
        await command(pilot, "/undo")
        await wait_until(pilot, lambda: told(app, "There is nothing to bring back."))


async def test_a_conversation_that_cannot_be_deleted_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Repository, conversation: int) -> None:
        raise StoreError("The disk is full.")

    async with chat(Parts(tmp_path, Script([THOUGHT]))) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
        session = app.session
        assert session is not None
        monkeypatch.setattr(Repository, "delete", full)
        await command(pilot, "/delete")
        await wait_until(pilot, lambda: told(app, "The disk is full."))
        await wait_until(pilot, lambda: session.record and len(session.path) == 2)
        assert not told(app, "is deleted")


async def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script([THOUGHT]))) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
        await command(pilot, f"/export {tmp_path / 'no folder' / 'chat.md'}")
        await wait_until(pilot, lambda: told(app, "The conversation cannot be written"))
        app.clear_notifications()
        await command(pilot, "/export ~nobody-of-that-name/chat.md")
        await wait_until(pilot, lambda: told(app, "The conversation cannot be written: No such file"))
        (tmp_path / "chat.md").write_text("mine")
        await command(pilot, f"/export {tmp_path / 'chat.md'}")
        await wait_until(pilot, lambda: told(app, "is there already"))
        assert (tmp_path / "chat.md").read_text() == "mine"


async def test_the_last_answer_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []
    monkeypatch.setattr(ChatScreen, "copy_text", lambda self, text: copied.append(text))
    async with chat(Parts(tmp_path, Script([THOUGHT]))) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
        await command(pilot, "/copy")
        await wait_until(pilot, lambda: copied)
    assert copied == ["The capital is **Paris**."]


async def test_another_answer_is_asked_for_and_the_first_one_is_a_branch_away(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["a</think>First.", "b</think>Second."]))
    async with chat(parts) as (app, pilot):
        await say(pilot, "question")
        await answered(pilot, app)
        await command(pilot, "/again")
        await wait_until(pilot, lambda: app.session and not app.session.busy and len(parts.engine.asked) == 2)
        assert app.session is not None
        await wait_until(pilot, lambda: app.session and app.session.path[-1].content == "Second.")
        await command(pilot, "/branch back")
        await wait_until(pilot, lambda: app.session and app.session.path[-1].content == "First.")
        await command(pilot, "/branch on")
        await wait_until(pilot, lambda: app.session and app.session.path[-1].content == "Second.")


async def test_thinking_effort_and_tools_are_switched(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path)) as (app, pilot):
        session = app.session
        assert session is not None
        assert session.settings.thinking
        await command(pilot, "/thinking off")
        await wait_until(pilot, lambda: not session.settings.thinking)
        await command(pilot, "/thinking off")
        assert not session.settings.thinking
        await command(pilot, "/thinking")
        await wait_until(pilot, lambda: session.settings.thinking)
        await command(pilot, "/effort")
        await wait_until(pilot, lambda: isinstance(app.screen, EffortScreen))
        await pilot.press("escape")
        await command(pilot, "/effort max")
        await wait_until(pilot, lambda: session.settings.effort == "max")
        await command(pilot, "/effort default")
        await wait_until(pilot, lambda: session.settings.effort is None)
        await command(pilot, "/tools on")
        await wait_until(pilot, lambda: session.tools.on)
        await command(pilot, "/tools")
        await wait_until(pilot, lambda: not session.tools.on)
        await command(pilot, "/approvals")
        await wait_until(pilot, lambda: isinstance(app.screen, ApprovalsScreen))


async def test_what_is_loaded_is_told_and_that_nothing_is(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    async with chat(parts) as (app, pilot):
        await command(pilot, "/model")
        await wait_until(pilot, lambda: told(app, f"context {parts.max_context:,} tokens"))
        assert app.session is not None
        app.session.link.ready = None
        await command(pilot, "/model")
        await wait_until(pilot, lambda: told(app, "No model is loaded"))


async def test_a_theme_is_looked_for_in_all_there_are(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path)) as (app, pilot):
        app.register_theme(Theme("mine", primary="#ff0000"))
        await command(pilot, "/theme mine")
        await wait_until(pilot, lambda: app.theme == "mine")
        await command(pilot, "/theme nobodys")
        await wait_until(pilot, lambda: told(app, "There is no theme nobodys"))
        assert app.theme == "mine"
