"""Copying text so that it can be said truly what happened: by a program of the desktop, else by the terminal.

A program that ended well has the text. The terminal is only asked (OSC 52, wrapped for tmux); many refuse
silently, so that is never called success.
"""

import base64
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

_SECONDS = 2.0


@dataclass(frozen=True)
class Copied:
    """certain: a program of the desktop took the text. escape: still to be written to the terminal."""

    certain: bool
    sentence: str
    escape: str = ""


def copy(text: str) -> Copied:
    """Copy `text`; takes up to a few seconds when a desktop's program hangs."""
    for command in _programs():
        try:
            subprocess.run(
                command,
                input=text.encode(),
                timeout=_SECONDS,
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return Copied(True, f"Copied {len(text):,} characters.")
    return Copied(
        False,
        f"Asked the terminal to copy {len(text):,} characters; not every terminal does.",
        osc52(text, in_tmux="TMUX" in os.environ),
    )


def osc52(text: str, *, in_tmux: bool) -> str:
    """The escape sequence that asks a terminal to copy `text`."""
    sequence = f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07"
    if in_tmux:
        return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    return sequence


def _programs() -> list[list[str]]:
    """The desktop's copy programs that can reach the person's clipboard: not those of a far machine."""
    if "SSH_CONNECTION" in os.environ or "SSH_TTY" in os.environ:
        return []
    candidates: list[list[str]] = []
    if sys.platform == "darwin":
        candidates.append(["pbcopy"])
    if "WAYLAND_DISPLAY" in os.environ:
        candidates.append(["wl-copy"])
    if "DISPLAY" in os.environ:
        candidates += [["xclip", "-selection", "clipboard"], ["xsel", "--clipboard", "--input"]]
    if "WSL_DISTRO_NAME" in os.environ:
        candidates.append(["clip.exe"])
    return [command for command in candidates if shutil.which(command[0])]
