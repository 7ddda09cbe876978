"""What a changed setting does to a running session. Those of the engine hold from the next start on."""

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dsv4chat.app.session import ChatSession


def take_effect(session: "ChatSession", section: str, name: str) -> None:
    """To be called after `section.name` was changed."""
    settings = session.preferences.settings
    if section == "chat":
        chat = settings.chat
        session.set_defaults(
            replace(session.defaults, system=chat.system, thinking=chat.thinking, effort=chat.effort)
        )
    elif section == "tools" and name == "functions":
        session.tools.forget_toolbox()
