"""Commands: typed after a slash, completed, found in the palette; each does what the table says."""

from pathlib import Path

import pytest
from textual.command import CommandPalette
from textual.pilot import Pilot

from dsv4chat.app.app import ChatApp
from dsv4chat.app.commands import COMMANDS
from dsv4chat.app.preferences import Preferences
from dsv4chat.app.screens.chat_screen import ChatScreen
from dsv4chat.app.screens.code_screen import CodeScreen
from dsv4chat.app.screens.help_screen import HelpScreen
from dsv4chat.app.screens.search_screen import SearchScreen
from dsv4chat.app.screens.settings_screen import SettingsScreen
from dsv4chat.app.widgets.command_offers import CommandOffers
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.settings import Settings, load_settings
from tests.support.app_parts import Parts, screen_text, wait_until
from tests.support.chat import THOUGHT, answered, chat, one, say
from tests.support.fake_engine import Script


async def command(pilot: Pilot[None], text: str) -> None:
    """Type a command without its completion getting in the way."""
    composer = pilot.app.screen.query_one(Composer)
    composer.insert(text)
    await pilot.pause()
    await pilot.press("escape", "enter")
    await pilot.pause()


def told(app: ChatApp, words: str) -> bool:
    """Whether a notice with these words is shown."""
    return any(words in notice.message for notice in app._notifications)


def test_every_command_can_be_carried_out() -> None:
    keys = {binding.id for binding in ChatScreen.BINDINGS} | {"quit"}  # type: ignore[union-attr]
    for one_command in COMMANDS:
        assert one_command.words[0].isupper(), one_command.name
        assert not one_command.binding or one_command.binding in keys, one_command.name
        if one_command.argument:
            assert hasattr(ChatScreen, f"command_{one_command.name}"), one_command.name
        elif not one_command.action.startswith("app."):
            assert hasattr(ChatScreen, f"action_{one_command.action}"), one_command.name


async def test_typing_a_slash_offers_commands_and_enter_carries_out_the_marked_one(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path)) as (app, pilot):
        listed = one(app, CommandOffers)
        await pilot.press("slash")
        await wait_until(pilot, lambda: listed.display)
        assert listed.option_count == len(COMMANDS)
        await pilot.press("s", "e")
        await wait_until(pilot, lambda: listed.marked == "/settings")
        await pilot.press("enter")
        await wait_until(pilot, lambda: isinstance(app.screen, SettingsScreen))
        await pilot.press("escape")
        await wait_until(pilot, lambda: app.screen is app.chat)
        assert one(app, Composer).text == ""
        assert not listed.display


async def test_tab_completes_a_command_and_then_its_choices(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path)) as (app, pilot):
        listed, composer = one(app, CommandOffers), one(app, Composer)
        await pilot.press(*"/eff")
        await wait_until(pilot, lambda: listed.marked == "/effort")
        await pilot.press("tab")
        await wait_until(pilot, lambda: listed.option_count == 4)
        assert composer.text == "/effort "
        await pilot.press("down", "down", "tab")
        await wait_until(pilot, lambda: composer.text == "/effort high")
        await pilot.press("enter")
        await wait_until(pilot, lambda: app.session and app.session.settings.effort == "high")
        assert composer.text == ""


async def test_escape_hides_the_offers_and_a_click_takes_one(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path)) as (app, pilot):
        listed = one(app, CommandOffers)
        await pilot.press("slash", "h")
        await wait_until(pilot, lambda: listed.display)
        await pilot.press("escape")
        await wait_until(pilot, lambda: not listed.display)
        assert one(app, Composer).text == "/h"
        await pilot.press("e")
        await wait_until(pilot, lambda: listed.marked == "/help")
        await pilot.click(CommandOffers, offset=(2, 0))
        await wait_until(pilot, lambda: isinstance(app.screen, HelpScreen))


async def test_what_is_no_command_is_told_or_sent(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["x</think>A path."]))
    async with chat(parts) as (app, pilot):
        for typed, words in (
            ("/nonsense", "There is no command /nonsense."),
            ("/rename", "/rename needs TITLE"),
            ("/new now", "/new takes nothing after it."),
            ("/effort much", "not 'much'"),
        ):
            await command(pilot, typed)
            await wait_until(pilot, lambda words=words: told(app, words))
            assert one(app, Composer).text == typed
            one(app, Composer).clear()
        assert not parts.engine.asked
        await command(pilot, "/usr/bin/env is a path")
        await answered(pilot, app)
        assert app.session is not None
        assert app.session.path[0].content == "/usr/bin/env is a path"


async def test_conversations_by_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with chat(Parts(tmp_path / "data", Script([THOUGHT, "y</think>Other."]))) as (app, pilot):
        await say(pilot, "Capital?")
        await answered(pilot, app)
        session = app.session
        assert session is not None
        await command(pilot, "/rename My [b]title[/b]")
        await wait_until(pilot, lambda: session.title == "My [b]title[/b]")
        await command(pilot, "/system Be brief.")
        await wait_until(pilot, lambda: session.settings.system == "Be brief.")
        await command(pilot, "/export")
        await wait_until(pilot, lambda: list(tmp_path.glob("*.md")))
        (written,) = tmp_path.glob("*.md")
        assert written.name == "My-b-title-b.md"
        assert "The capital is **Paris**." in written.read_text()
        await command(pilot, f"/export {written.name}")
        await wait_until(pilot, lambda: told(app, "is there already"))
        await command(pilot, "/export talk.txt")
        await wait_until(pilot, lambda: told(app, "talk.txt ends in neither .md (Markdown) nor .json"))
        await command(pilot, "/export plain")
        await wait_until(pilot, lambda: told(app, "without an ending it is Markdown"))
        assert not (tmp_path / "talk.txt").exists()
        assert (tmp_path / "plain.md").exists()
        await command(pilot, "/export talk.json")
        await wait_until(pilot, lambda: (tmp_path / "talk.json").exists())
        await command(pilot, "/delete")
        await wait_until(pilot, lambda: session.record is None)
        assert not await session.summaries()
        await command(pilot, "/undo")
        await wait_until(pilot, lambda: session.title == "My [b]title[/b]")
        await wait_until(pilot, lambda: "The capital is Paris." in screen_text(app))
        await command(pilot, "/again")
        await answered(pilot, app)
        await wait_until(pilot, lambda: "Other." in screen_text(app))
        await command(pilot, "/branch back")
        await wait_until(pilot, lambda: "The capital is Paris." in screen_text(app))
        await command(pilot, "/edit")
        composer = one(app, Composer)
        await wait_until(pilot, lambda: composer.text == "Capital?")


async def test_search_finds_a_message_of_another_conversation_and_goes_there(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["x</think>A zebra.", "x</think>A giraffe."]))
    async with chat(parts) as (app, pilot):
        await say(pilot, "first animal")
        await answered(pilot, app)
        await command(pilot, "/new")
        await say(pilot, "second animal")
        await answered(pilot, app)
        await pilot.press("ctrl+f")
        await wait_until(pilot, lambda: isinstance(app.screen, SearchScreen))
        await pilot.press(*"zeb")
        await wait_until(pilot, lambda: "1 message, newest first" in screen_text(app))
        await pilot.press("enter")
        await wait_until(pilot, lambda: app.screen is app.chat and "A zebra." in screen_text(app))
        assert "A giraffe." not in screen_text(app)
        transcript = app.chat.query_one("#transcript")
        assert app.session is not None
        assert transcript.selected == app.session.path[1].id  # type: ignore[attr-defined]


async def test_the_palette_has_all_commands(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path)) as (app, pilot):
        await pilot.press("ctrl+p")
        await wait_until(pilot, lambda: isinstance(app.screen, CommandPalette))
        await pilot.press(*"all", "space", *"keys")
        await wait_until(pilot, lambda: "All keys and commands" in screen_text(app))
        await pilot.press("enter")
        await wait_until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await pilot.press("escape", "ctrl+p")
        await wait_until(pilot, lambda: isinstance(app.screen, CommandPalette))
        await pilot.press(*"give", "space", *"this")
        await wait_until(pilot, lambda: "Give this conversation a title" in screen_text(app))
        await pilot.press("enter")
        await wait_until(pilot, lambda: one(app, Composer).text == "/rename ")


async def test_help_shows_the_keys_as_they_are_set(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.preferences = Preferences(Settings(keys={"new": "f9", "nothing": "x"}))
    async with chat(parts, (100, 90)) as (app, pilot):
        await wait_until(pilot, lambda: told(app, "The settings name keys for nothing"))
        await pilot.press("f9")
        await wait_until(pilot, lambda: app.session and app.session.record is None)
        await pilot.press("f1")
        await wait_until(pilot, lambda: isinstance(app.screen, HelpScreen))
        shown = screen_text(app)
        assert "F9" in next(line for line in shown.splitlines() if "/new" in line)
        assert "Ctrl+N" not in shown
        assert "Ctrl+O" in next(line for line in shown.splitlines() if "/chats" in line)
        for one_command in COMMANDS:
            assert f"/{one_command.name}" in shown


async def test_a_theme_is_chosen_kept_and_a_wrong_one_told(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    path = tmp_path / "settings.toml"
    parts.preferences = Preferences(None, path)
    async with chat(parts) as (app, pilot):
        await command(pilot, "/theme dsv4-light")
        await wait_until(pilot, lambda: app.theme == "dsv4-light")
        assert load_settings(path).settings.appearance.theme == "dsv4-light"
        await command(pilot, "/theme nowhere")
        await wait_until(pilot, lambda: told(app, "There is no theme nowhere"))
        await pilot.press("f8")
        await wait_until(pilot, lambda: isinstance(app.screen, SettingsScreen))
        await pilot.press("enter")
        await wait_until(pilot, lambda: app.theme != "dsv4-light")
        assert load_settings(path).settings.appearance.theme == app.theme


CODE = "x</think>First:\n\n```python\nprint(1)\n```\n\nSecond:\n\n```\n[red]two\nlines\n```\n"


async def test_a_code_block_is_chosen_and_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    monkeypatch.setattr(ChatScreen, "copy_text", lambda self, text: taken.append(text))
    parts = Parts(tmp_path, Script([CODE, "x</think>```\nonly\n```"]))
    async with chat(parts) as (app, pilot):
        await pilot.press("f7")
        await wait_until(pilot, lambda: told(app, "has no code block"))
        await say(pilot, "code")
        await answered(pilot, app)
        await pilot.press("f7")
        await wait_until(pilot, lambda: isinstance(app.screen, CodeScreen))
        assert "[red]two" in screen_text(app)
        await pilot.press("up", "enter")
        await wait_until(pilot, lambda: taken == ["print(1)"])
        await say(pilot, "one block")
        await answered(pilot, app, 2)
        await command(pilot, "/code")
        await wait_until(pilot, lambda: taken == ["print(1)", "only"])
        await command(pilot, "/copy")
        await wait_until(pilot, lambda: taken[-1] == "```\nonly\n```")


async def test_settings_take_effect_at_once(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(["x</think>One."]))
    async with chat(parts) as (app, pilot):
        session = app.session
        assert session is not None
        from dsv4chat.app.preference_effects import take_effect

        session.preferences.changed.append(lambda section, name: take_effect(session, section, name))
        session.preferences.set("sampling", "temperature", 0.25)
        session.preferences.set("chat", "system", "Be kind.")
        session.preferences.set("chat", "thinking", False)
        await say(pilot, "go")
        await answered(pilot, app)
        assert parts.engine.sampling[-1].temperature == 0.25
        assert session.settings.system == "Be kind."
        assert "○ thinking off" in screen_text(app)
