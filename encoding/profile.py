"""The two prompt profiles, and which of them a checkpoint was trained with.

preview   the April 2026 checkpoints: only effort `max` puts a prefix before the conversation
current   the July 2026 checkpoints and later: `high` has that prefix, `max` a longer one, and thinking
          without an effort means `high`
"""

import ast
import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from dsv4chat.encoding.errors import EncodingError
from dsv4chat.encoding.template import EFFORT_FIRM, EFFORT_UTMOST

_LARGEST_FILE = 4_000_000  # bytes; the real encoder file is 30 kB


class Profile(StrEnum):
    PREVIEW = "preview"
    CURRENT = "current"


@dataclass(frozen=True)
class ProfileChoice:
    """A profile, where it comes from (a few words), and what to tell the user if it is not certain."""

    profile: Profile
    source: str
    notice: str | None = None


def effort_prefix(profile: Profile, thinking: bool, effort: str | None) -> str:
    """The text right after the begin-of-sentence token; empty in chat mode."""
    if not thinking:
        return ""
    if profile is Profile.PREVIEW:
        return EFFORT_FIRM if effort == "max" else ""
    return {"low": "", "max": EFFORT_UTMOST}.get(effort or "high", EFFORT_FIRM)


def detect_profile(folder: Path, override: str | None = None) -> ProfileChoice:
    """The profile of the checkpoint in `folder`.

    In this order: `override`; `prompt_profile` in config.json; the encoder file beside the weights, read as
    data and never run; `dspark_*` keys in config.json (weak); else preview with a notice. EncodingError for
    an unknown name or an unreadable config.json.
    """
    if override is not None:
        return ProfileChoice(_named(override, "--profile"), "chosen by the user")
    config = _config(folder / "config.json")
    named = config.get("prompt_profile")
    if named is not None:
        return ProfileChoice(_named(named, "prompt_profile in config.json"), "config.json")
    encoder = folder / "encoding" / "encoding_dsv4.py"
    notice = None
    if encoder.is_file():
        found = _profile_of_encoder(encoder)
        if found is not None:
            return ProfileChoice(found, "encoding/encoding_dsv4.py")
        notice = "encoding/encoding_dsv4.py beside the weights could not be read. "
    if any(key.startswith("dspark_") for key in config):
        return ProfileChoice(
            Profile.CURRENT,
            "dspark_* keys in config.json",
            (notice or "")
            + "The prompt profile `current` is a guess from dspark_* keys in config.json, which some builds "
            "have over the preview model; choose --profile preview if answers look odd.",
        )
    return ProfileChoice(
        Profile.PREVIEW,
        "default",
        (notice or "")
        + "Nothing beside the weights says which prompt profile they were trained with; using `preview`. "
        "Choose --profile current for checkpoints of July 2026 or later.",
    )


def _named(name: Any, where: str) -> Profile:
    try:
        return Profile(name)
    except ValueError:
        raise EncodingError(f"{where} must be `preview` or `current`, not {name!r}.") from None


def _config(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise EncodingError(f"{path} cannot be read ({error}); restore it from the checkpoint.") from None
    if not isinstance(config, dict):
        raise EncodingError(f"{path} does not hold a JSON object; restore it from the checkpoint.")
    return config


def _profile_of_encoder(path: Path) -> Profile | None:
    """current if the file defines a table with the efforts low, high and max; None if it is not Python.

    Only the syntax tree is looked at: nothing in the file is run.
    """
    try:
        if path.stat().st_size > _LARGEST_FILE:
            return None
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
            if {"low", "high", "max"} <= keys:
                return Profile.CURRENT
    return Profile.PREVIEW
