"""All settings with what they mean; each is changed on its own and saved at once."""

import re
from types import NoneType
from typing import Any, ClassVar, Literal, get_args, get_origin

from pydantic.fields import FieldInfo
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from dsv4chat.app.preferences import Preferences
from dsv4chat.app.screens.over_chat import OverChat
from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.choice_list import ChoiceList
from dsv4chat.app.widgets.harmless_editing import HarmlessInput
from dsv4chat.settings import Settings
from dsv4chat.settings_edit import section_model
from dsv4chat.visible import visible

_ESCAPED = re.compile(r"\\([n\\])")
_WIDTH = 30  # cells of a name
_LATER = "engine"  # this section holds from the next start of the program on


class SettingsScreen(OverChat[None]):
    """Enter toggles, goes to the next choice, or asks for a value; Esc goes back.

    choices: what there is to choose from where the models do not say it, as {"appearance.theme": names}.
    own: what holds where a setting is unset and the model says something, as {"sampling.temperature": 0.6}.
    """

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "leave", "Leave", show=False, priority=True),
        Binding("delete", "unset", "As it was made", show=False),
    ]

    def __init__(
        self,
        preferences: Preferences,
        choices: dict[str, list[str]] | None = None,
        own: dict[str, object] | None = None,
    ) -> None:
        super().__init__()
        self._preferences = preferences
        self._given = choices or {}
        self._own = own or {}
        self._rows: list[tuple[str, str]] = []  # section and name of each line; name "" for a heading
        self._editing: tuple[str, str] | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="box") as box:
            box.border_title = "Settings"
            box.border_subtitle = str(self._preferences.path or "")
            yield ChoiceList(compact=True, markup=False)
            yield Static("", markup=False, id="words")
            yield HarmlessInput(compact=True)
            yield Static("", markup=False, id="trouble")
            yield Static(
                "Enter changes · Delete: as it was made · Esc goes back", markup=False, classes="hint"
            )

    def on_mount(self) -> None:
        for section in Settings.model_fields:
            if isinstance(getattr(self._preferences.settings, section), dict):
                continue
            self._rows.append((section, ""))
            self._rows += [(section, name) for name in section_model(section).model_fields]
        options = self.query_one(OptionList)
        options.add_options(self._option(section, name) for section, name in self._rows)
        options.highlighted = 1
        options.focus()
        self.query_one(Input).display = False
        self._tell("")

    # -- changing --------------------------------------------------------------------------------------

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        section, name = self._rows[event.option_index]
        choices = self._choices(section, name)
        value = self._value(section, name)
        if choices:
            at = choices.index(value) if value in choices else -1
            self._set(section, name, choices[(at + 1) % len(choices)])
            return
        self._editing = (section, name)
        line = self.query_one(Input)
        line.value = _as_typed(value)
        line.border_title = f"{section}.{name}"
        line.display = True
        line.focus()

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        if self._editing is not None and self._set(
            *self._editing, _from_typed(event.value, self._field(*self._editing))
        ):
            self._end_editing()

    def _set(self, section: str, name: str, value: object) -> bool:
        try:
            trouble = self._preferences.set(section, name, value)
        except ValueError as error:
            self._tell(f"{error}.", wrong=True)
            return False
        self._changed(section, name, trouble)
        return True

    def _changed(self, section: str, name: str, trouble: str | None) -> None:
        variable = self._preferences.from_environment(section, name)
        if trouble:
            self._tell(trouble, wrong=True)
        elif variable:
            self._tell(
                f"Saved, but {variable} in the environment sets it anew at the next start.", wrong=True
            )
        else:
            self._tell("Saved; holds from the next start on." if section == _LATER else "Saved.")
        self.query_one(OptionList).replace_option_prompt_at_index(
            self._rows.index((section, name)), self._line(section, name)
        )

    def _end_editing(self) -> None:
        self._editing = None
        self.query_one(Input).display = False
        self.query_one(OptionList).focus()

    def action_unset(self) -> None:
        at = self.query_one(OptionList).highlighted
        if self._editing is None and at is not None and self._rows[at][1]:
            section, name = self._rows[at]
            self._changed(section, name, self._preferences.unset(section, name))

    def action_leave(self) -> None:
        if self._editing is not None:
            self._end_editing()
            self._tell("")
        else:
            self.dismiss(None)

    # -- showing ---------------------------------------------------------------------------------------

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        section, name = self._rows[event.option_index]
        self.query_one("#words", Static).update(Content(self._field(section, name).description or ""))
        self._tell("")

    def _tell(self, sentence: str, *, wrong: bool = False) -> None:
        line = self.query_one("#trouble", Static)
        line.set_class(wrong, "-wrong")
        line.display = bool(sentence)
        line.update(Content(visible(sentence)))

    def _option(self, section: str, name: str) -> Option:
        if name:
            return Option(self._line(section, name))
        words = " ".join((section_model(section).__doc__ or "").split())
        heading = Content.assemble((section, "$primary bold"), (f"  {words}", "$foreground 55%"))
        return Option(heading, disabled=True)

    def _line(self, section: str, name: str) -> Content:
        value = self._value(section, name)
        shown = " ".join(visible(_as_typed(value)).split()) or "unset"
        if f"{section}.{name}" in self._own:
            changed = self._is_set(section, name)
            shown += "" if changed else "  as the model says"
        else:
            changed = value != self._field(section, name).get_default(call_default_factory=True)
        return Content.assemble(
            f"  {name:{_WIDTH - 2}}", (shown, "$accent" if changed else "$foreground 70%")
        )

    def _is_set(self, section: str, name: str) -> bool:
        return name in getattr(self._preferences.settings, section).model_fields_set

    def _value(self, section: str, name: str) -> Any:
        """What is in force."""
        if not self._is_set(section, name) and f"{section}.{name}" in self._own:
            return self._own[f"{section}.{name}"]
        return getattr(getattr(self._preferences.settings, section), name)

    def _field(self, section: str, name: str) -> FieldInfo:
        return section_model(section).model_fields[name]

    def _choices(self, section: str, name: str) -> list[Any]:
        """All values of a setting that has only a few; [] otherwise."""
        if f"{section}.{name}" in self._given:
            return list(self._given[f"{section}.{name}"])
        annotation = self._field(section, name).annotation
        if annotation is bool:
            return [False, True]
        choices: list[Any] = []
        for part in (annotation, *get_args(annotation)):
            if get_origin(part) is Literal:
                choices += get_args(part)
            elif part is NoneType:
                choices.append(None)
        return choices if any(choice is not None for choice in choices) else []


def _as_typed(value: Any) -> str:
    """A value as a person types it in one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value).replace("\\", "\\\\").replace("\n", "\\n") if isinstance(value, str) else str(value)


def _from_typed(text: str, field: FieldInfo) -> Any:
    if get_origin(field.annotation) is list:
        return [part.strip() for part in text.split(",") if part.strip()]
    if field.annotation is str:
        return _ESCAPED.sub(lambda match: "\n" if match[1] == "n" else "\\", text)
    return text.strip() or None
