"""A widget's style sheet: the `.tcss` file beside its module."""

from pathlib import Path


def beside(module: str) -> str:
    """The text of the style sheet that stands beside a module, given its `__file__`."""
    return Path(module).with_suffix(".tcss").read_text(encoding="utf-8")
