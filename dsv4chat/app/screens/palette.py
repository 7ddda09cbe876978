"""The command palette: Textual's, carried out once and only where it has room."""

from textual import on
from textual.command import CommandList, CommandPalette
from textual.events import Resize
from textual.geometry import Size
from textual.message import Message
from textual.widgets import Input, OptionList

from dsv4chat.app.screens.over_chat import LeftOnce


class Palette(LeftOnce, CommandPalette):
    """Textual's list of commands fails at Page down while it has no row, and at any text in a few columns."""

    @staticmethod
    def fits(size: Size) -> bool:
        return size.width >= 10 and size.height >= 5

    @on(Resize)
    def _leave_where_it_has_no_room(self, event: Resize) -> None:
        if not self.fits(event.size):
            self.dismiss(None)

    def _action_command_list(self, action: str) -> None:
        if self.query_one(CommandList).scrollable_content_region or not action.startswith("page"):
            super()._action_command_list(action)

    async def _dispatch_message(self, message: Message) -> None:
        # A second Enter, read before the palette was gone, would carry out the command again.
        if self.app.screen is self or not isinstance(message, (Input.Submitted, OptionList.OptionSelected)):
            await super()._dispatch_message(message)
