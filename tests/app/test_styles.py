"""The style files: what they are for exists."""

from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest
from textual.app import App
from textual.css.model import SelectorType
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode

import dsv4chat.app

FILES = sorted(Path(dsv4chat.app.__file__).parent.rglob("*.tcss"))


@pytest.fixture(scope="module")
def classes() -> set[str]:
    for module in walk_packages(dsv4chat.app.__path__, "dsv4chat.app."):
        import_module(module.name)
    found: set[str] = set()
    waiting: list[type[DOMNode]] = [DOMNode]
    while waiting:
        kind = waiting.pop()
        found.add(kind.__name__)
        waiting += kind.__subclasses__()
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_widget_a_style_names_exists(file: Path, classes: set[str]) -> None:
    styles = Stylesheet(variables=App().get_css_variables())
    styles.read(file)
    named = {
        selector.name
        for rule in styles.rules
        for part in rule.selector_set
        for selector in part.selectors
        if selector.type is SelectorType.TYPE
    }
    assert named
    assert named <= classes
