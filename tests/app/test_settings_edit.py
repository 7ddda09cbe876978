"""One setting is changed in the file; everything else in it stays byte for byte."""

import os
import stat
from pathlib import Path

import pytest

from dsv4chat.settings import Settings, load_settings
from dsv4chat.settings_edit import SettingsUnwritable, check_setting, save_setting

MINE = """# how I like it
[chat]     # talk
thinking = true   # always
effort = 'low'

[sampling]
temperature = 0.7
   [tools]
functions = [
  "weather.py:forecast",  # mine
]
"""


def test_all_but_the_setting_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(MINE)
    save_setting(path, "chat", "thinking", False)
    assert path.read_text() == MINE.replace("thinking = true", "thinking = false")
    save_setting(path, "chat", "effort", None)
    assert path.read_text() == MINE.replace("thinking = true", "thinking = false").replace(
        "effort = 'low'\n", ""
    )
    assert load_settings(path).settings.chat.thinking is False


def test_a_new_section_and_a_new_file_are_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "settings.toml"
    save_setting(path, "sampling", "seed", 7)
    save_setting(path, "keys", "stop", "f8")
    loaded = load_settings(path)
    assert loaded.notice is None
    assert loaded.settings.sampling.seed == 7
    assert loaded.settings.keys == {"stop": "f8"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_every_setting_survives_a_round_trip_through_the_file(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    changed = Settings(
        appearance={"theme": "nord"},
        chat={"thinking": False, "effort": "max", "system": 'Say "hi"\nand [no] more # ever'},
        engine={"device": "cpu", "dtype": "float32", "kv_dtype": "bfloat16", "max_context": 4096},
        sampling={
            "temperature": 0.25,
            "top_p": 0.5,
            "top_k": 3,
            "min_p": 0.1,
            "repetition_penalty": 1.5,
            "seed": 2**63,
            "max_tokens": 9,
        },
        tools={
            "enabled": True,
            "functions": ["a:b", "c.py:d"],
            "rounds": 2,
            "seconds": 1.5,
            "characters": 500,
        },
    )
    for section, values in changed.model_dump().items():
        for name, value in values.items():
            save_setting(path, section, name, value)
    assert load_settings(path).settings.model_dump() == changed.model_dump()


def test_a_link_stays_a_link_and_permissions_stay(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("[chat]\r\nthinking = true\r\n", newline="")
    real.chmod(0o640)
    path = tmp_path / "settings.toml"
    path.symlink_to(real)
    save_setting(path, "chat", "thinking", False)
    assert path.is_symlink()
    assert real.read_bytes() == b"[chat]\r\nthinking = false\r\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


@pytest.mark.parametrize("text", ["not toml [", "chat = 3\n", "[[chat]]\nx = 1\n", "\xff"])
def test_a_file_that_is_broken_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(SettingsUnwritable, match=r"settings\.toml"):
        save_setting(path, "chat", "thinking", False)
    assert path.read_bytes() == text.encode("latin-1")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(SettingsUnwritable, match="cannot be written"):
        save_setting(tmp_path / "settings.toml", "chat", "thinking", False)
    tmp_path.chmod(0o700)


def test_a_place_that_cannot_be_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsUnwritable, match="cannot be"):
        save_setting(tmp_path / "file" / "settings.toml", "chat", "thinking", False)


def test_values_are_checked_as_the_file_would_be() -> None:
    assert check_setting("sampling", "temperature", "0.5") == 0.5
    assert check_setting("engine", "max_context", None) is None
    for section, name, value in (
        ("sampling", "top_p", "2"),
        ("chat", "effort", "hard"),
        ("engine", "max_context", "0"),
        ("tools", "rounds", "x"),
    ):
        with pytest.raises(ValueError, match=name):
            check_setting(section, name, value)


def test_taking_out_what_is_not_there_changes_nothing_and_leaves_no_file_behind(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("# mine\n")
    save_setting(path, "chat", "thinking", None)
    assert path.read_text() == "# mine\n"
    assert [one.name for one in tmp_path.iterdir()] == ["settings.toml"]


def test_a_file_that_cannot_be_replaced_leaves_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    (tmp_path / "settings.toml").write_text("# mine\n")
    with pytest.raises(SettingsUnwritable, match="No space left"):
        save_setting(tmp_path / "settings.toml", "chat", "thinking", False)
    assert [one.name for one in tmp_path.iterdir()] == ["settings.toml"]
    assert (tmp_path / "settings.toml").read_text() == "# mine\n"
