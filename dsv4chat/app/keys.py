"""The keys of the program: what each does, under which name the settings change it, how it is written."""

from collections.abc import Mapping

from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode

_NAMES = {
    "pageup": "Page up",
    "pagedown": "Page down",
    "escape": "Esc",
    "home": "Home",
    "end": "End",
    "space": "Space",
    "enter": "Enter",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
}


def bindings(*owners: type[DOMNode] | type[App[object]]) -> dict[str, Binding]:
    """The bindings of these classes that have a name, by that name; a key list is one binding."""
    found: dict[str, Binding] = {}
    for owner in owners:
        for binding in owner.BINDINGS:
            if isinstance(binding, Binding) and binding.id is not None:
                found.setdefault(binding.id, binding)
    return found


def usable(changed: Mapping[str, str]) -> dict[str, str]:
    """The keys of the settings without empty ones; a name with no other is left out."""
    lists = {name: [key.strip() for key in keys.split(",") if key.strip()] for name, keys in changed.items()}
    return {name: ",".join(keys) for name, keys in lists.items() if keys}


def keys_of(name: str, own: Mapping[str, Binding], changed: Mapping[str, str]) -> str:
    """The keys of a binding as people read them, "" for one that is not there: "Ctrl+N", "↑, K".

    changed: the `usable` keys of the settings.
    """
    keys = changed.get(name) or (own[name].key if name in own else "")
    return ", ".join(written(key) for key in keys.split(",") if key)


def written(key: str) -> str:
    """A key as people read it: "ctrl+n" is "Ctrl+N"."""
    return "+".join(_NAMES.get(part, part.capitalize()) for part in key.strip().split("+"))


def complaints(changed: Mapping[str, str], own: Mapping[str, Binding]) -> list[str]:
    """What is wrong with the keys of the settings: names there are not, no key at all, keys with two uses."""
    given = usable(changed)
    wrong = sorted(set(changed) - set(own))
    found = []
    if wrong:
        found.append(f"The settings name keys for {', '.join(wrong)}; there are: {', '.join(sorted(own))}.")
    uses: dict[str, list[str]] = {}
    for name, binding in own.items():
        for key in (given.get(name) or binding.key).split(","):
            uses.setdefault(key.strip(), []).append(name)
    for name in sorted(set(changed) & set(own)):
        if name not in given:
            found.append(f"The settings give no key to {name}; it keeps {keys_of(name, own, given)}.")
            continue
        for key in given[name].split(","):
            others = [other for other in uses[key] if other != name]
            if others:
                found.append(
                    f"The settings give {written(key)} to {name}; it is also for {', '.join(others)}."
                )
    return found
