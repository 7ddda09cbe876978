"""An answer: finished blocks as Markdown, the open one as plain text that becomes Markdown once."""

from textual.containers import Vertical

from dsv4chat.app.blocks import BlockSplitter
from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.finished_markdown import FinishedMarkdown
from dsv4chat.app.widgets.growing_text import GrowingText
from dsv4chat.app.widgets.settled_size import SettledColumn


class AnswerText(SettledColumn, Vertical):
    """Text of an answer. `write` as it comes, then `finish`; or the whole text at once as `text`."""

    DEFAULT_CSS = beside(__file__)
    BLANK = True  # nothing of its own is drawn, which Textual then does at no cost

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._whole = text
        self._splitter = BlockSplitter()
        self._tail: GrowingText | None = None
        self._shown = 0  # characters of the open block that the tail shows

    def on_mount(self) -> None:
        if self._whole:
            self.mount(FinishedMarkdown(self._whole))

    @property
    def source(self) -> str:
        """The Markdown text so far."""
        return self._whole

    async def write(self, text: str) -> None:
        """Add to the end; blocks this finishes turn into Markdown."""
        self._whole += text
        await self._promote(self._splitter.push(text))

    async def finish(self) -> None:
        """The end of the text: what is still plain becomes Markdown."""
        await self._promote(self._splitter.finish())
        if self._tail is not None:
            await self._tail.remove()
            self._tail, self._shown = None, 0

    async def _promote(self, blocks: list[str]) -> None:
        if not blocks:
            await self._show_tail()
            return
        finished = FinishedMarkdown("\n".join(blocks))
        finished.display = False  # keys are drawn while it is made
        await self.mount(finished, before=self._tail)
        with self.app.batch_update():  # all of it in one layout
            finished.display = True
            if self._tail is not None:
                await self._tail.clear()
                self._shown = 0
            await self._show_tail()

    async def _show_tail(self) -> None:
        """Bring the plain text at the end up to date. An open fence shows its code, without the marker."""
        text = self._splitter.open
        code = self._splitter.kind == "fence"
        if code:
            text = text.partition("\n")[2]
        tail, anything = self._tail, bool(text.strip("\n"))
        if tail is not None:
            if tail.has_class("-code") != code:
                tail.set_class(code, "-code")
                await tail.clear()
                self._shown = 0
            tail.display = anything
        if not anything:
            return
        if tail is None:
            tail = self._tail = GrowingText(classes="tail -code" if code else "tail")
            await self.mount(tail)
        tail.append(text[self._shown :])
        self._shown = len(text)
