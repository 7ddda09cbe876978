"""Containers that draw nothing of their own, which Textual then does at no cost however often it is asked."""

from textual.containers import Container, Horizontal, Vertical


class PlainArea(Container):
    """No background, border or text of its own."""

    BLANK = True


class PlainRow(Horizontal):
    """The same, its children side by side."""

    BLANK = True


class PlainColumn(Vertical):
    """The same, its children one below the other."""

    BLANK = True
