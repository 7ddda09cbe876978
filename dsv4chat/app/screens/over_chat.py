"""Screens over the chat, which are left once."""

from typing import TYPE_CHECKING, Any, TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, Screen

if TYPE_CHECKING:
    _Screen = Screen[Any]
else:
    _Screen = object  # of several bases Textual takes styles from the first only: be none of them

Result = TypeVar("Result")


class LeftOnce(_Screen):
    """What comes in the same burst of keys or clicks as the choice finds a screen that is gone already."""

    def dismiss(self, result: Any = None) -> AwaitComplete:
        if self.app.screen is not self:
            return AwaitComplete()
        left: AwaitComplete = super().dismiss(result)
        return left


class OverChat(LeftOnce, ModalScreen[Result]):
    """A modal screen that gives back its result once."""
