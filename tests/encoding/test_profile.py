"""Which prompt profile a checkpoint gets, and from where."""

import json
import sys
from pathlib import Path

import pytest

from dsv4chat.encoding import EncodingError, Profile, detect_profile

PREVIEW_ENCODER = 'REASONING_EFFORT_MAX = "Reasoning Effort: ..."\nTASKS = {"action": "a", "max": "b"}\n'
CURRENT_ENCODER = 'REASONING_EFFORT_PROMPTS = {"low": "", "high": "x", "max": "y" * 2}\n'


def folder(tmp_path: Path, config: object = None, encoder: str | bytes | None = None) -> Path:
    if config is not None:
        (tmp_path / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    if encoder is not None:
        (tmp_path / "encoding").mkdir()
        data = encoder if isinstance(encoder, bytes) else encoder.encode()
        (tmp_path / "encoding" / "encoding_dsv4.py").write_bytes(data)
    return tmp_path


@pytest.mark.parametrize("name", ["preview", "current"])
def test_the_config_decides_before_the_encoder_file(tmp_path: Path, name: str) -> None:
    other = CURRENT_ENCODER if name == "preview" else PREVIEW_ENCODER
    choice = detect_profile(folder(tmp_path, {"prompt_profile": name}, other))
    assert (choice.profile, choice.notice) == (Profile(name), None)


@pytest.mark.parametrize(("encoder", "profile"), [(PREVIEW_ENCODER, "preview"), (CURRENT_ENCODER, "current")])
def test_the_encoder_file_decides_before_dspark_keys(tmp_path: Path, encoder: str, profile: str) -> None:
    choice = detect_profile(folder(tmp_path, {"dspark_layers": 2}, encoder))
    assert (choice.profile, choice.notice) == (Profile(profile), None)


def test_the_encoder_file_is_never_run(tmp_path: Path) -> None:
    trap = "import sys\nsys.dsv4chat_trap = True\nraise SystemExit(3)\n" + CURRENT_ENCODER
    assert detect_profile(folder(tmp_path, {}, trap)).profile is Profile.CURRENT
    assert not hasattr(sys, "dsv4chat_trap")


def test_dspark_keys_are_a_guess_that_is_said(tmp_path: Path) -> None:
    choice = detect_profile(folder(tmp_path, {"dspark_layers": 2}))
    assert choice.profile is Profile.CURRENT
    assert "guess" in str(choice.notice)


@pytest.mark.parametrize("config", [None, {}, {"hidden_size": 1}])
def test_nothing_known_means_preview_with_a_notice(tmp_path: Path, config: object) -> None:
    choice = detect_profile(folder(tmp_path, config))
    assert choice.profile is Profile.PREVIEW
    assert "--profile current" in str(choice.notice)


@pytest.mark.parametrize("encoder", ["def broken(:\n", b"\xff\xfe\x00", "(" * 5000, "x = 1\x00"])
def test_an_unreadable_encoder_file_is_said_and_passed_over(tmp_path: Path, encoder: str | bytes) -> None:
    choice = detect_profile(folder(tmp_path, {}, encoder))
    assert choice.profile is Profile.PREVIEW
    assert "could not be read" in str(choice.notice)


def test_the_user_overrides_everything(tmp_path: Path) -> None:
    choice = detect_profile(folder(tmp_path, {"prompt_profile": "preview"}, PREVIEW_ENCODER), "current")
    assert (choice.profile, choice.notice) == (Profile.CURRENT, None)


@pytest.mark.parametrize(
    "config", ["", "{", "[]", "3", '{"prompt_profile": "april"}', '{"prompt_profile": 3}']
)
def test_a_broken_config_is_a_sentence(tmp_path: Path, config: str) -> None:
    with pytest.raises(EncodingError, match=r"config\.json"):
        detect_profile(folder(tmp_path, config))


def test_an_unknown_override_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(EncodingError, match="preview"):
        detect_profile(tmp_path, "april")
