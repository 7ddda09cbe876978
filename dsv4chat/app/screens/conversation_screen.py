"""One conversation: its title, system prompt and sampling."""

from dataclasses import dataclass, replace
from typing import ClassVar

from pydantic import ValidationError
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static, TextArea

from dsv4chat.app.screens.over_chat import OverChat
from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.harmless_editing import HarmlessInput, HarmlessTextArea
from dsv4chat.settings import SamplingSettings
from dsv4chat.store import ConversationSettings

_INTEGERS = ("top_k", "seed", "max_tokens")
_FIELDS = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "seed", "max_tokens")


@dataclass(frozen=True)
class ConversationForm:
    """What the person filled in."""

    title: str
    settings: ConversationSettings


class ConversationScreen(OverChat[ConversationForm | None]):
    """Gives back what was filled in, or None when it is left by Esc.

    usual: the sampling of the settings and the model, which holds where a field is left empty.
    """

    DEFAULT_CSS = beside(__file__)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave it as it was", priority=True),
        Binding("ctrl+s", "save", "Save", priority=True),
    ]

    def __init__(self, title: str, settings: ConversationSettings, usual: dict[str, object]) -> None:
        super().__init__()
        self._title = title
        self._settings = settings
        self._usual = usual

    def compose(self) -> ComposeResult:
        descriptions = SamplingSettings.model_fields
        with VerticalScroll(id="box") as box:
            box.border_title = "This conversation"
            yield Static("Title", markup=False, classes="head")
            yield HarmlessInput(self._title, id="title", compact=True)
            yield Static("System prompt", markup=False, classes="head")
            yield HarmlessTextArea(
                self._settings.system, id="system", soft_wrap=True, tab_behavior="focus", compact=True
            )
            yield Static("Sampling; empty: as the settings or the model say", markup=False, classes="head")
            for name in _FIELDS:
                given = self._settings.sampling.get(name)
                usual = self._usual.get(name)
                with Horizontal(classes="field"):
                    yield Static(name, markup=False, classes="name")
                    yield Input(
                        "" if given is None else str(given),
                        placeholder="unset" if usual is None else str(usual),
                        id=name,
                        compact=True,
                    )
                    words = descriptions[name].description or ""
                    yield Static(Content(words), markup=False, classes="words")
            yield Static("", markup=False, id="trouble")
            yield Static("Enter or Ctrl+S saves · Esc leaves it as it was", markup=False, classes="hint")

    def on_mount(self) -> None:
        self.query_one("#trouble").display = False
        self.query_one("#title").focus()

    @on(Input.Submitted)
    def _enter(self) -> None:
        self.action_save()

    def action_save(self) -> None:
        trouble = ""
        sampling: dict[str, object] = {}
        for name in _FIELDS:
            text = self.query_one(f"#{name}", Input).value.strip()
            if not text:
                continue
            try:
                sampling[name] = int(text) if name in _INTEGERS else float(text)
                SamplingSettings.model_validate(sampling)
            except ValidationError as error:
                trouble = f"{name}: {error.errors()[0]['msg']}"
            except ValueError:
                trouble = f"{name} must be a number, not {text!r}."
            if trouble:
                break
        line = self.query_one("#trouble", Static)
        line.display = bool(trouble)
        line.update(Content(trouble))
        if trouble:
            self.query_one(f"#{name}").focus()
            return
        system = self.query_one("#system", TextArea).text
        title = self.query_one("#title", Input).value.strip()
        self.dismiss(ConversationForm(title, replace(self._settings, system=system, sampling=sampling)))

    def action_leave(self) -> None:
        self.dismiss(None)
