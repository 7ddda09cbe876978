"""The settings screen alone: every kind of setting is changed, saved, refused, set back."""

import re
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from dsv4chat.app.preferences import Preferences
from dsv4chat.app.screens.settings_screen import SettingsScreen
from dsv4chat.settings import load_settings
from tests.support.app_parts import wait_until
from tests.support.host import Host, drawn, hosted_screen


def go_to(host: Host, name: str) -> None:
    screen = host.screen
    assert isinstance(screen, SettingsScreen)
    at = next(at for at, (_, row) in enumerate(screen._rows) if row == name)
    screen.query_one(OptionList).highlighted = at


def kept(path: Path) -> object:
    loaded = load_settings(path)
    assert loaded.notice is None
    return loaded.settings


async def change(host: Host, pilot: Pilot[None], name: str, value: str) -> None:
    go_to(host, name)
    await pilot.press("enter")
    host.screen.query_one(Input).value = value
    await pilot.press("enter")
    await pilot.pause()


async def test_each_kind_of_setting_is_changed_and_saved_beside_what_the_file_has(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("# mine\n[chat]\nthinking = true # yes\n")
    preferences = Preferences(load_settings(path).settings, path)
    told: list[tuple[str, str]] = []
    preferences.changed.append(lambda section, name: told.append((section, name)))
    async with hosted_screen(lambda: SettingsScreen(preferences), (90, 50)) as (host, pilot, given):
        go_to(host, "thinking")
        await pilot.press("enter")
        await wait_until(pilot, lambda: "Saved." in drawn(host))
        go_to(host, "effort")
        await pilot.press("enter", "enter")
        await change(host, pilot, "temperature", "0.5")
        await change(host, pilot, "functions", "a.py:f, b:g")
        await change(host, pilot, "system", r"first\nsecond \\n")
        await change(host, pilot, "max_context", "4096")
        assert "from the next start on" in drawn(host)
        await pilot.press("escape")
        await wait_until(pilot, lambda: given == [None])
    now = preferences.settings
    assert kept(path).model_dump() == now.model_dump()  # type: ignore[attr-defined]
    assert (now.chat.thinking, now.chat.effort, now.sampling.temperature) == (False, "high", 0.5)
    assert now.chat.system == "first\nsecond \\n"
    assert now.tools.functions == ["a.py:f", "b:g"]
    assert now.engine.max_context == 4096
    assert path.read_text().startswith("# mine\n[chat]\nthinking = false # yes\n")
    assert told[0] == ("chat", "thinking")


@pytest.mark.parametrize(
    ("name", "value"), [("temperature", "hot"), ("top_p", "2"), ("rounds", "0"), ("seed", "-1")]
)
async def test_a_value_that_cannot_be_is_refused_and_stays_to_be_corrected(
    tmp_path: Path, name: str, value: str
) -> None:
    preferences = Preferences(None, tmp_path / "settings.toml")
    before = preferences.settings.model_dump()
    async with hosted_screen(lambda: SettingsScreen(preferences), (90, 50)) as (host, pilot, given):
        await change(host, pilot, name, value)
        assert f"{name}: Input should" in drawn(host)
        assert host.screen.query_one(Input).has_focus
        await pilot.press("escape")
        await pilot.pause()
        assert not host.screen.query_one(Input).display
        assert given == []
    assert preferences.settings.model_dump() == before
    assert not (tmp_path / "settings.toml").exists()


async def test_delete_sets_back_what_was_changed(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("[sampling]\nseed = 7 # lucky\n")
    preferences = Preferences(load_settings(path).settings, path)
    async with hosted_screen(lambda: SettingsScreen(preferences), (90, 50)) as (host, pilot, _):
        go_to(host, "seed")
        await pilot.press("delete")
        await pilot.pause()
    assert preferences.settings.sampling.seed is None
    assert "seed" not in path.read_text()


async def test_what_the_model_says_is_shown_until_it_is_set(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    preferences = Preferences(load_settings(path).settings, path)
    own: dict[str, object] = {"sampling.temperature": 0.6}
    async with hosted_screen(lambda: SettingsScreen(preferences, own=own), (90, 50)) as (host, pilot, _):
        assert re.search(r"temperature +0\.6 +as the model says", drawn(host))
        await change(host, pilot, "temperature", "1")
        assert re.search(r"temperature +1\.0 ", drawn(host))
        assert preferences.settings.sampling.given() == {"temperature": 1.0}
        go_to(host, "temperature")
        await pilot.press("delete")
        await pilot.pause()
        assert re.search(r"temperature +0\.6 +as the model says", drawn(host))
        assert preferences.settings.sampling.given() == {}
    assert "temperature" not in path.read_text()


async def test_a_broken_file_is_named_and_the_setting_holds_for_now(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("broken [")
    preferences = Preferences(None, path)
    async with hosted_screen(lambda: SettingsScreen(preferences), (90, 50)) as (host, pilot, _):
        go_to(host, "thinking")
        await pilot.press("enter")
        # The sentence names the file's path; where its lines break depends on how long that is.
        await wait_until(pilot, lambda: "correct it first" in " ".join(drawn(host).replace("│", " ").split()))
    assert preferences.settings.chat.thinking is False
    assert path.read_text() == "broken ["


async def test_a_setting_of_the_environment_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSV4CHAT_CHAT__THINKING", "true")
    preferences = Preferences(None, tmp_path / "settings.toml")
    async with hosted_screen(lambda: SettingsScreen(preferences), (90, 50)) as (host, pilot, _):
        go_to(host, "thinking")
        await pilot.press("enter")
        await wait_until(pilot, lambda: "DSV4CHAT_CHAT__THINKING in the environment" in drawn(host))


@pytest.mark.parametrize("size", [(40, 15), (20, 6)])
async def test_it_fits_small_terminals(tmp_path: Path, size: tuple[int, int]) -> None:
    preferences = Preferences(None, tmp_path / "settings.toml")
    async with hosted_screen(lambda: SettingsScreen(preferences), size) as (host, pilot, _):
        await pilot.press("down", "down", "enter")
        await pilot.pause()
        assert len(drawn(host).splitlines()) <= size[1]


async def test_names_that_are_given_are_gone_through(tmp_path: Path) -> None:
    preferences = Preferences(None, tmp_path / "settings.toml")
    choices = {"appearance.theme": ["dsv4-dark", "nord"]}
    async with hosted_screen(lambda: SettingsScreen(preferences, choices), (90, 50)) as (host, pilot, _):
        go_to(host, "theme")
        await pilot.press("enter")
        await pilot.pause()
        assert preferences.settings.appearance.theme == "nord"
        await pilot.press("enter")
        await pilot.pause()
        assert preferences.settings.appearance.theme == "dsv4-dark"
