"""All commands of the app in one table: typed after a slash, found in the palette, listed in the help.

A command with an argument is carried out by `command_NAME(argument)` of the chat screen, any other by its
action. `binding` names the key binding that does the same; what key that is can be changed in the settings.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TYPED = re.compile(r"/([a-z]+)(?:[ \t]+(.*))?", re.DOTALL)


@dataclass(frozen=True)
class Command:
    """argument: what it takes, as the help shows it; choices: of what. "[...]" may be left out."""

    name: str
    words: str
    group: str
    action: str = ""
    binding: str = ""
    argument: str = ""
    choices: tuple[str, ...] = ()

    @property
    def needs_argument(self) -> bool:
        return self.argument != "" and not self.argument.startswith("[")


COMMANDS = (
    Command("new", "Begin a new conversation", "Conversation", "new_conversation", "new"),
    Command("chats", "All conversations", "Conversation", "conversations", "conversations"),
    Command("find", "Search all conversations", "Conversation", binding="find", argument="[WORDS]"),
    Command("this", "Title, system prompt and sampling", "Conversation", "this_conversation", "this"),
    Command("rename", "Give this conversation a title", "Conversation", argument="TITLE"),
    Command("system", "Set the system prompt of this conversation", "Conversation", argument="[TEXT]"),
    Command("export", "Write this conversation to a .md or .json file", "Conversation", argument="[FILE]"),
    Command(
        "forget",
        "Leave the oldest turns out of the prompt (0: none)",
        "Conversation",
        argument="[TURNS]",
    ),
    Command("caches", "Where the caches of conversations are", "Conversation", "caches"),
    Command("delete", "Delete this conversation", "Conversation", "delete_conversation"),
    Command("edit", "Change your last message; the old one stays as a branch", "Message", "edit_last"),
    Command("again", "Another answer; the old one stays as a branch", "Message", "again"),
    Command("continue", "Go on with an answer that was stopped", "Message", "resume"),
    Command("branch", "Show another branch", "Message", argument="[back|on]", choices=("back", "on")),
    Command("undo", "Bring back what was deleted", "Message", "undo"),
    Command("copy", "Copy the last answer", "Message", "copy_answer"),
    Command("code", "Copy a code block of the last answer", "Message", "copy_code", "copy_code"),
    Command("editor", "Write the message in your editor", "Message", "editor", "editor"),
    Command(
        "thinking",
        "Thinking on or off",
        "Model",
        binding="thinking",
        argument="[on|off]",
        choices=("on", "off"),
    ),
    Command(
        "effort",
        "How hard it thinks",
        "Model",
        binding="effort",
        argument="[default|low|high|max]",
        choices=("default", "low", "high", "max"),
    ),
    Command("tools", "Tools on or off", "Model", binding="tools", argument="[on|off]", choices=("on", "off")),
    Command("approvals", "Which tools may run unasked", "Model", "approvals"),
    Command("model", "What is loaded", "Model", "model"),
    Command("restart", "Restart the engine", "Model", "restart_engine", "restart"),
    Command("log", "The engine's log", "Model", "log", "log"),
    Command("unfold", "Show or hide the thinking", "Screen", "unfold", "unfold"),
    Command("panels", "Show or hide the panels", "Screen", "toggle_panels", "panels"),
    Command("theme", "Another look", "Screen", argument="[NAME]"),
    Command("settings", "All settings", "Screen", "settings", "settings"),
    Command("help", "All keys and commands", "Screen", "help", "help"),
    Command("quit", "Leave the program", "Screen", "app.quit", "quit"),
)
BY_NAME = {command.name: command for command in COMMANDS}


def parse(text: str) -> tuple[str, str] | None:
    """("rename", "A title") for "/rename A title"; None for text that is a message.

    A path such as /usr/bin is a message, and so is what begins with a space.
    """
    match = _TYPED.fullmatch(text.rstrip())
    return (match[1], (match[2] or "").strip()) if match else None


def completions(text: str, themes: Sequence[str] = ()) -> list[tuple[str, str]]:
    """(what the text would become, what that does) for a text that begins with a slash, best first."""
    if not text.startswith("/") or "\n" in text:
        return []
    name, space, argument = text[1:].partition(" ")
    if not space:
        begin = [command for command in COMMANDS if command.name.startswith(name)]
        inside = [command for command in COMMANDS if name in command.name[1:] and command not in begin]
        return [(f"/{command.name}", command.words) for command in (*begin, *inside)]
    command = BY_NAME.get(name)
    if command is None:
        return []
    choices = tuple(themes) if name == "theme" else command.choices
    return [(f"/{name} {choice}", command.words) for choice in choices if choice.startswith(argument.strip())]
