"""The coloured side of an answer: its tokens by surprise instead of the finished text, while wanted."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dsv4chat.app.token_cells import TokenCell, answer_cells
from dsv4chat.app.widgets.answer_text import AnswerText
from dsv4chat.app.widgets.thinking_view import ThinkingView
from dsv4chat.app.widgets.token_text import TokenText

if TYPE_CHECKING:
    from dsv4chat.app.widgets.assistant_message import AssistantMessage


class ColouredAnswer:
    """Keeps the tokens of a message that is being written, as colours may be asked for at any time."""

    def __init__(self, message: "AssistantMessage", on: bool) -> None:
        self.on = on
        self._message = message
        self._cells: list[TokenCell] = []
        self._text: TokenText | None = None

    def of(self, kind: str) -> list[TokenCell] | None:
        """The tokens of one kind ("reasoning", "answer") if they are to be shown, else None."""
        if not self.on:
            return None
        if kind == "answer":
            return answer_cells(self._cells)
        return [cell for cell in self._cells if cell.kind == kind]

    async def add(self, cells: Sequence[TokenCell]) -> None:
        """More tokens of a message that is being written."""
        self._cells += cells
        if not self.on:
            return
        thinking = self._message.thinking
        if thinking is not None:
            thinking.add_cells([cell for cell in cells if cell.kind == "reasoning"])
        await self._show(self.of("answer") or [])

    async def set(self, on: bool, cells: Sequence[TokenCell]) -> None:
        """Switch; cells: those that came before the first `add`."""
        if on == self.on and not cells:
            return
        self.on = on
        if cells and (not self._message.live or not self._cells):
            self._cells = list(cells)
        elif cells:
            self._cells = [*cells, *self._cells]
        for text in self._message.query_children(AnswerText):
            text.display = not on
        for thinking in self._message.query_children(ThinkingView):
            thinking.show_tokens(self.of("reasoning"))
        await self._drop()
        await self._show(self.of("answer") or [])

    async def _show(self, cells: Sequence[TokenCell]) -> None:
        """Show these and no others."""
        shown = len(self._text.cells) if self._text is not None else 0
        if self._text is not None and len(cells) >= shown:
            self._text.append(cells[shown:])
            return
        await self._drop()
        if cells:
            self._text = TokenText(cells)
            plain = next(iter(self._message.query_children(AnswerText)), None)
            place = plain or next(iter(self._message.query_children(".outcome")), None)
            if place is not None:  # else the message was removed meanwhile; its cards stand below the text
                await self._message.mount(self._text, before=place)

    async def _drop(self) -> None:
        if self._text is not None:
            await self._text.remove()
            self._text = None
