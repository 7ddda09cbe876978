"""The settings: documented models, read from one TOML file (`settings.toml` in the platform's config folder).

Every field has a default, so no file is needed. Environment variables named DSV4CHAT_SECTION__FIELD
(DSV4CHAT_CHAT__THINKING=false, say) win over the file.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from dsv4chat.settings_file import settings_path


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class AppearanceSettings(_Section):
    """How the app looks."""

    theme: str = "dsv4-dark"
    """A theme's name: dsv4-dark, dsv4-light, or one of Textual's (ansi-dark, nord, gruvbox, ...)."""


class ChatSettings(_Section):
    """What a new conversation begins with."""

    thinking: bool = True
    """Whether the model thinks before it answers."""
    effort: Literal["low", "high", "max"] | None = None
    """How hard it thinks; unset: as it was trained to do unasked."""
    system: str = ""
    """The system message."""


class EngineSettings(_Section):
    """How the model is loaded; "auto" lets the engine choose."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where it runs."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of activations and of weights that are not quantised."""
    kv_dtype: Literal["auto", "float32", "bfloat16", "fp8"] = "auto"
    """How the cache stores keys and values."""
    kernels: Literal["auto", "torch", "cute"] = "auto"
    """What decoding on a GPU runs on: PyTorch or the kernels."""
    max_context: int | None = Field(default=None, ge=1)
    """The most tokens a conversation may have; unset: what the model was made for, as memory allows."""
    cache_memory: float = Field(default=2.0, ge=0)
    """GB of main memory for the caches of conversations that are not open; what is beyond goes to disk."""
    cache_disk: float = Field(default=8.0, ge=0)
    """GB of disk for saved caches; those used longest ago are removed. 0: nothing is saved."""


class SamplingSettings(_Section):
    """How the next token is chosen, in the app and in `dsv4chat ask`, whose options win.

    Unset: as the model's generation_config.json says, or else from the model's own distribution.
    """

    temperature: float = Field(default=1.0, ge=0)
    """0 takes the most probable token."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Keep the likeliest tokens up to this sum of probability."""
    top_k: int = Field(default=0, ge=0)
    """Keep this many of the most probable tokens; 0: all."""
    min_p: float = Field(default=0.0, ge=0, le=1)
    """Drop tokens less probable than this part of the most probable one."""
    repetition_penalty: float = Field(default=1.0, gt=0)
    """Above 1: tokens that were there lately become less probable."""
    seed: int | None = Field(default=None, ge=0, lt=2**64)
    """Repeats an answer to the same conversation; unset: another draw each time."""
    max_tokens: int | None = Field(default=None, ge=1)
    """The longest answer; unset: as long as the context lasts."""

    def given(self) -> dict[str, object]:
        """Only what the file or the environment sets, by name."""
        return self.model_dump(exclude_unset=True)


class ToolsSettings(_Section):
    """Functions the model may call."""

    enabled: bool = False
    """Whether a new conversation begins with tools on."""
    functions: list[str] = []
    """Your own tools: "package.module:function", or "file.py:function" in this folder. Their code is run."""
    rounds: int = Field(default=8, ge=1)
    """How often the model may call tools before it has to answer."""
    seconds: float = Field(default=30.0, gt=0)
    """How long one call may take."""
    characters: int = Field(default=20_000, ge=100)
    """How much of a result the model gets."""


class Settings(BaseSettings):
    """All settings."""

    model_config = SettingsConfigDict(
        extra="forbid", env_prefix="DSV4CHAT_", env_nested_delimiter="__", use_attribute_docstrings=True
    )

    appearance: AppearanceSettings = AppearanceSettings()
    chat: ChatSettings = ChatSettings()
    engine: EngineSettings = EngineSettings()
    sampling: SamplingSettings = SamplingSettings()
    tools: ToolsSettings = ToolsSettings()
    keys: dict[str, str] = {}
    """Other keys for a command: its name in the help, then keys separated by commas (stop = "escape,f8")."""


@dataclass(frozen=True)
class LoadedSettings:
    """notice: a sentence if the file could not be used; then the defaults hold."""

    settings: Settings
    notice: str | None = None


def load_settings(path: Path | None = None) -> LoadedSettings:
    """The settings of `path` (default: the platform's place)."""
    try:
        path = path or settings_path()
    except OSError:
        return LoadedSettings(Settings())

    class FromFile(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return env_settings, TomlConfigSettingsSource(settings_cls, path)

    try:
        return LoadedSettings(FromFile())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        reason = f"{where}: {first['msg']}"
    except (SettingsError, OSError, ValueError) as error:
        reason = str(error)
    return LoadedSettings(
        Settings.model_construct(),
        f"The settings in {path} cannot be used ({reason}); the defaults are used until that is corrected.",
    )
