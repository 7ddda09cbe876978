"""Settings come from one TOML file; whatever is wrong with it, the program starts and says what."""

from pathlib import Path

import pytest

from dsv4chat.settings import Settings, load_settings
from dsv4chat.settings_file import peek_theme


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    loaded = load_settings(tmp_path / "settings.toml")
    assert loaded.notice is None
    assert loaded.settings.chat.thinking
    assert loaded.settings.sampling.temperature == 1.0
    assert loaded.settings.sampling.given() == {}


def test_a_file_and_then_the_environment_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('[chat]\nthinking = false\neffort = "max"\n[sampling]\ntemperature = 0.5\nseed = 7\n')
    monkeypatch.setenv("DSV4CHAT_CHAT__EFFORT", "low")
    loaded = load_settings(path).settings
    assert (loaded.chat.thinking, loaded.chat.effort) == (False, "low")
    assert loaded.sampling.given() == {"temperature": 0.5, "seed": 7}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[chat]\nthinking = 5\n", "chat.thinking"),
        ("[chat]\nunknown = 1\n", "chat.unknown"),
        ("[sampling]\ntop_p = 2.0\n", "sampling.top_p"),
        ("[sampling]\ntemperature = nan\n", "sampling.temperature"),
        ("[engine]\ncache_memory = inf\n", "engine.cache_memory"),
        ("not toml at all [", "settings.toml"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_and_the_defaults_hold(
    tmp_path: Path, text: str, reason: str
) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    loaded = load_settings(path)
    assert loaded.notice is not None
    assert reason in loaded.notice
    assert loaded.settings.chat.thinking is True


def test_every_setting_is_documented() -> None:
    for name, section in Settings.model_fields.items():
        for field, described in getattr(section.annotation, "model_fields", {name: section}).items():
            assert described.description, f"{name}.{field}"


@pytest.mark.parametrize(
    ("text", "theme"),
    [
        ('[appearance]\ntheme = "nord"\n', "nord"),
        ("[appearance]\ntheme = 5\n", "dsv4-dark"),
        ("broken [", "dsv4-dark"),
        ("appearance = 3\n", "dsv4-dark"),
        ("", "dsv4-dark"),
    ],
)
def test_the_theme_is_read_before_the_first_paint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, theme: str
) -> None:
    monkeypatch.setenv("DSV4CHAT_HOME", str(tmp_path))
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "settings.toml").write_text(text)
    assert peek_theme() == theme
