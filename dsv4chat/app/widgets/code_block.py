"""A fence of code: its lines are wrapped, and only those in sight are drawn; much code is coloured later."""

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets._markdown import MarkdownFence

from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.drawn_block import DrawnBlock

AT_ONCE = 1500  # characters that are coloured before they are shown


class CodeBlock(DrawnBlock, MarkdownFence):
    """Much code would hold up the screen while it is analysed: it is shown plainly until that is done."""

    DEFAULT_CSS = beside(__file__)

    @classmethod
    def highlight(cls, code: str, language: str, ansi: bool = False, dark: bool = False) -> Content:
        if len(code) > AT_ONCE:
            return Content(code.rstrip("\n"))
        return super().highlight(code, language, ansi, dark)

    def compose(self) -> ComposeResult:
        self.draw = self._wrapped
        return iter(())

    def on_mount(self) -> None:
        self._colour()

    def set_content(self, content: Content) -> None:
        self._content = self._highlighted_code = content
        self.draw_again()
        if self.is_mounted:
            self._colour()

    def _wrapped(self, width: int) -> list[Content]:
        wrapped: list[Content] = []
        for line in self._highlighted_code.split("\n", allow_blank=True):
            wrapped += line.wrap(width) or [Content("")]
        return wrapped

    def _colour(self) -> None:
        if len(self.code) > AT_ONCE and self.lexer:
            self.run_worker(self._analyse, thread=True, exclusive=True, exit_on_error=False)

    def _analyse(self) -> None:
        theme = self.app.current_theme
        coloured = MarkdownFence.highlight(
            self.code, self.lexer, ansi=self.app.native_ansi_color, dark=theme.dark
        )
        self.app.call_from_thread(self._coloured, coloured)

    def _coloured(self, content: Content) -> None:
        self._content = self._highlighted_code = content
        self.draw_again()
