"""The tools there are: the built-in ones and the person's own functions."""

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dsv4chat.tools.calculator import calculator
from dsv4chat.tools.clock import clock
from dsv4chat.tools.errors import ToolUnusable
from dsv4chat.tools.tool import Tool, tool_from_function


class Toolbox:
    """Tools by name. troubles: a sentence for each of the person's functions that could not be used."""

    def __init__(self, tools: Iterable[Tool], troubles: Iterable[str] = ()) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self.troubles = tuple(troubles)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    @property
    def definitions(self) -> tuple[dict[str, Any], ...]:
        """What the model is told about them."""
        return tuple(tool.definition for tool in self._tools.values())

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)


def builtin_tools() -> list[Tool]:
    """The calculator and the clock; the demo model was trained on exactly their definitions."""
    return [tool_from_function(calculator), tool_from_function(clock)]


def load_toolbox(places: Iterable[str] = (), folder: Path | None = None) -> Toolbox:
    """The built-in tools, then the functions at `places`: "package.module:function" or "file.py:function".

    A relative file is looked for in `folder` (the settings' folder). Importing runs the code of that module
    or file, which is why nothing is loaded that the person did not name in the settings.
    """
    tools, troubles = builtin_tools(), []
    for place in places:
        try:
            tool = tool_from_function(_function(place, folder))
            if any(tool.name == other.name for other in tools):
                raise ToolUnusable(f"there is already a tool {tool.name}; give the function another name.")
            tools.append(tool)
        except ToolUnusable as error:
            troubles.append(f"The tool {place} of the settings is left out: {error}")
    return Toolbox(tools, troubles)


def _function(place: str, folder: Path | None) -> Any:
    where, _, name = place.rpartition(":")
    if not where or not name:
        raise ToolUnusable('write it as "module:function" or "file.py:function".')
    try:
        module = _file(where, folder) if where.endswith(".py") else importlib.import_module(where)
    except Exception as error:  # the person's own code may raise anything
        raise ToolUnusable(f"{where} cannot be loaded ({type(error).__name__}: {error}).") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise ToolUnusable(f"{where} has no function {name}.")
    return function


def _file(where: str, folder: Path | None) -> Any:
    path = Path(where).expanduser()
    if not path.is_absolute() and folder is not None:
        path = folder / path
    name = f"dsv4chat_tools_of_the_person.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ToolUnusable(f"{path} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and type hints look their module up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
