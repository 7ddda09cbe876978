"""The settings while the program runs: what holds now, and the file they are kept in."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from dsv4chat.settings import Settings
from dsv4chat.settings_edit import SettingsUnwritable, check_setting, save_setting
from dsv4chat.tool_loop import ToolLimits
from dsv4chat.tools import Toolbox, load_toolbox


class Preferences:
    """settings: as they hold now. path: their file, None when there is no place for one."""

    def __init__(self, settings: Settings | None = None, path: Path | None = None) -> None:
        self.settings = settings or Settings.model_construct()
        self.path = path
        self.changed: list[Callable[[str, str], None]] = []
        self._toolbox: Toolbox | None = None

    def set(self, section: str, name: str, value: object) -> str | None:
        """Change `section.name` now and in the file; the sentence to show if it could not be saved.

        Calls each of `changed` with section and name. ValueError, a sentence, if the value cannot be.
        """
        checked = check_setting(section, name, value)
        part = getattr(self.settings, section)
        return self._change(section, name, part.model_copy(update={name: checked}), checked)

    def unset(self, section: str, name: str) -> str | None:
        """As it was made: the setting goes out of the file. Otherwise like `set`."""
        part = getattr(self.settings, section)
        kept = {other: getattr(part, other) for other in part.model_fields_set - {name}}
        return self._change(section, name, type(part).model_construct(**kept), None)

    def _change(self, section: str, name: str, part: BaseModel, value: Any) -> str | None:
        self.settings = self.settings.model_copy(update={section: part})
        if (section, name) == ("tools", "functions"):
            self._toolbox = None
        for listener in self.changed:
            listener(section, name)
        return self._save(section, name, value)

    def toolbox(self) -> Toolbox:
        """The built-in tools and those the settings name, whose code is run. To be called in a thread."""
        if self._toolbox is None:
            folder = self.path.parent if self.path else None
            self._toolbox = load_toolbox(self.settings.tools.functions, folder)
        return self._toolbox

    def tool_limits(self) -> ToolLimits:
        """As the settings have them."""
        tools = self.settings.tools
        return ToolLimits(tools.rounds, tools.seconds, tools.characters)

    def from_environment(self, section: str, name: str) -> str | None:
        """The environment variable that sets `section.name` over the file, if one does."""
        for variable in os.environ:
            if variable.upper() == f"DSV4CHAT_{section}__{name}".upper():
                return variable
        return None

    def _save(self, section: str, name: str, value: Any) -> str | None:
        if self.path is None:
            return "There is no folder for the settings: this holds until you quit."
        try:
            save_setting(self.path, section, name, value)
        except SettingsUnwritable as error:
            return str(error)
        return None
