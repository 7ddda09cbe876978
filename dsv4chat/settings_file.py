"""The settings file, and the one thing in it that the first paint needs. Light: no pydantic."""

import tomllib
from pathlib import Path

from dsv4chat.paths import config_folder

FILE_NAME = "settings.toml"


def settings_path() -> Path:
    """Where the settings are. Raises OSError when there can be no such folder."""
    return config_folder() / FILE_NAME


def peek_theme(default: str = "dsv4-dark") -> str:
    """`appearance.theme` of the settings file, `default` if it cannot be read; it is checked later."""
    try:
        with settings_path().open("rb") as file:
            theme = tomllib.load(file).get("appearance", {}).get("theme", default)
    except (OSError, ValueError, AttributeError):
        return default
    return theme if isinstance(theme, str) else default
