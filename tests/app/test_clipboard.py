"""Copying: the desktop's program first, then the terminal, and never a false claim."""

import base64
import stat
from pathlib import Path

import pytest

from dsv4chat.app.clipboard import copy, osc52


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "TMUX", "SSH_CONNECTION", "SSH_TTY", "WSL_DISTRO_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_a_desktops_program_takes_the_text_exactly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(tmp_path, "wl-copy", f"cat > {tmp_path}/taken")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    copied = copy("ein Text\nmit ünïcode")
    assert copied.certain
    assert copied.escape == ""
    assert "20 characters" in copied.sentence
    assert (tmp_path / "taken").read_text() == "ein Text\nmit ünïcode"


def test_when_the_program_fails_the_terminal_is_asked_and_no_success_claimed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program(tmp_path, "xclip", "exit 1")
    monkeypatch.setenv("DISPLAY", ":0")
    copied = copy("text")
    assert not copied.certain
    assert "Asked the terminal" in copied.sentence
    assert copied.escape == "\x1b]52;c;dGV4dA==\x07"


def test_over_ssh_the_far_desktop_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(tmp_path, "wl-copy", f"touch {tmp_path}/taken")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.setenv("SSH_CONNECTION", "1 2 3 4")
    assert not copy("text").certain
    assert not (tmp_path / "taken").exists()


def test_in_tmux_the_sequence_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "/tmp/tmux")
    payload = base64.b64encode(b"text").decode()
    assert copy("text").escape == f"\x1bPtmux;\x1b\x1b]52;c;{payload}\x07\x1b\\"
    assert osc52("text", in_tmux=False) == f"\x1b]52;c;{payload}\x07"


@pytest.mark.parametrize(
    ("variable", "name"), [("DISPLAY", "xclip"), ("DISPLAY", "xsel"), ("WSL_DISTRO_NAME", "clip.exe")]
)
def test_each_desktops_program_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, name: str
) -> None:
    program(tmp_path, name, f"/bin/cat > {tmp_path}/taken")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(variable, "here")
    assert copy("text").certain
    assert (tmp_path / "taken").read_text() == "text"
