"""Changing one setting in the file; comments, order and unknown keys in it stay as they are."""

import os
import tempfile
from pathlib import Path
from typing import Any

import tomlkit
from pydantic import BaseModel, TypeAdapter, ValidationError
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table

from dsv4chat.settings import Settings


class SettingsUnwritable(Exception):  # noqa: N818 - named by what happened
    """The setting was not saved; the text says why and what to do."""


def check_setting(section: str, name: str, value: object) -> Any:
    """`value` as the setting `section.name` holds it. ValueError with a sentence if it cannot be that."""
    field = section_model(section).model_fields[name]
    try:
        return TypeAdapter(field.rebuild_annotation()).validate_python(value)
    except ValidationError as error:
        raise ValueError(f"{name}: {error.errors()[0]['msg']}") from None


def section_model(section: str) -> type[BaseModel]:
    """The documented model of a section."""
    model = Settings.model_fields[section].annotation
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise KeyError(section)
    return model


def save_setting(path: Path, section: str, name: str, value: object) -> None:
    """Write `section.name` into the file, or take it out of it when `value` is None. SettingsUnwritable.

    The file is replaced in one step: a full disk or a crash leaves the old one.
    """
    try:
        path = path.resolve()  # of a link, the file it leads to is replaced
        document = tomlkit.parse(_read(path))
    except (OSError, UnicodeDecodeError, TOMLKitError) as error:
        raise SettingsUnwritable(
            f"The setting is not saved, as {path} cannot be read ({error}); correct it first."
        ) from None
    table = document.get(section)
    if table is None:
        if value is None:
            return
        table = tomlkit.table()
        document[section] = table
    if not isinstance(table, Table):
        raise SettingsUnwritable(f"The setting is not saved: {section} in {path} is not a section.")
    if value is None:
        table.pop(name, None)
    else:
        table[name] = value
    try:
        _replace(path, tomlkit.dumps(document))
    except OSError as error:
        raise SettingsUnwritable(
            f"The setting holds until you quit, but {path} cannot be written ({error.strerror or error})."
        ) from None


def _read(path: Path) -> str:
    if not path.exists():
        return ""
    with path.open(encoding="utf-8", newline="") as file:  # line ends stay what they are
        return file.read()


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.chmod(name, path.stat().st_mode & 0o777)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
