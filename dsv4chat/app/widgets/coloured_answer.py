"""The coloured side of an answer: its tokens by surprise instead of the finished text, while wanted."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dsv4chat.app.token_cells import TokenCell
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
        """The tokens of one kind if they are to be shown, else None."""
        return [cell for cell in self._cells if cell.kind == kind] if self.on else None

    async def add(self, cells: Sequence[TokenCell]) -> None:
        """More tokens of a message that is being written."""
        self._cells += cells
        if not self.on:
            return
        thinking = self._message.thinking
        if thinking is not None:
            thinking.add_cells([cell for cell in cells if cell.kind == "reasoning"])
        answer = [cell for cell in cells if cell.kind == "answer"]
        if answer and self._text is not None:
            self._text.append(answer)
        elif answer:
            await self._mount(answer)

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
        if self._text is not None:
            await self._text.remove()
            self._text = None
        answer = self.of("answer")
        if answer:
            await self._mount(answer)

    async def _mount(self, cells: Sequence[TokenCell]) -> None:
        self._text = TokenText(cells)
        await self._message.mount(self._text, before=self._message.query_one(".outcome"))
