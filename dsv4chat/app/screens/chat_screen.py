"""The chat: transcript, input, panels. This is layout and keys; what happens comes by `ChatPresenter`."""

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Static

from dsv4chat.app.live_figures import LatencyFigures, ResidualFigures
from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.app.widgets.engine_banner import EngineBanner
from dsv4chat.app.widgets.latency_panel import LatencyPanel
from dsv4chat.app.widgets.metrics_line import MetricsLine
from dsv4chat.app.widgets.residual_panel import ResidualPanel
from dsv4chat.app.widgets.status_line import StatusLine
from dsv4chat.app.widgets.title_bar import TitleBar
from dsv4chat.app.widgets.transcript import Transcript
from dsv4chat.app.widgets.welcome import Welcome
from dsv4chat.app.wording import plural

if TYPE_CHECKING:
    from dsv4chat.app.presenter import ChatPresenter
    from dsv4chat.app.session import ChatSession

DRAINS_A_SECOND = 20
PANELS_A_SECOND = 5


class ChatScreen(Screen[None]):
    """Works without a session: then what is typed waits for it."""

    DEFAULT_CSS = beside(__file__)
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-middle"), (100, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (20, "-low"), (33, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "Stop", id="stop"),
        Binding("ctrl+t", "toggle_thinking", "Thinking", id="thinking"),
        Binding("ctrl+g", "choose_effort", "Effort", id="effort"),
        Binding("ctrl+r", "unfold", "Unfold", id="unfold", tooltip="Show or hide what the model thinks"),
        Binding("ctrl+n", "new_conversation", "New", id="new"),
        Binding("ctrl+o", "conversations", "Chats", id="conversations"),
        Binding("ctrl+b", "toggle_panels", "Panels", id="panels"),
        Binding("f1", "help", "Help", id="help"),
        Binding("ctrl+c", "interrupt", "Copy, stop, clear, quit", show=False, priority=True, id="interrupt"),
        Binding("f4", "log", "Engine's log", show=False, id="log"),
        Binding("f5", "restart_engine", "Restart the engine", show=False, id="restart"),
        Binding("pageup", "page(-1)", "Page up", show=False, priority=True, id="page_up"),
        Binding("pagedown", "page(1)", "Page down", show=False, priority=True, id="page_down"),
        Binding("ctrl+home", "beginning", "To the beginning", show=False, priority=True, id="beginning"),
        Binding("end,ctrl+end", "end", "To the end", show=False, id="end"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.session: ChatSession | None = None
        self.presenter: ChatPresenter | None = None
        self._latency = LatencyFigures()
        self._residual = ResidualFigures()
        self._was_busy = False

    def compose(self) -> ComposeResult:
        yield TitleBar()
        with Horizontal(id="main"):
            with Vertical(id="chat"):
                with Container(id="conversation"):
                    yield Transcript(Welcome(), id="transcript")
                    yield Static("", markup=False, id="below")
                yield EngineBanner()
                yield MetricsLine(self._latency, self._residual)
                yield Composer(id="composer")
                yield StatusLine()
            with Vertical(id="panels"):
                yield LatencyPanel(self._latency)
                yield ResidualPanel(self._residual)
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.query_one(EngineBanner).show_starting()
        self.query_one(Composer).focus()

    def attach(self, session: "ChatSession") -> None:
        """Show a session from now on."""
        from dsv4chat.app.presenter import ChatPresenter

        self.session = session
        self.presenter = ChatPresenter(
            session,
            transcript=self.query_one(Transcript),
            welcome=self.query_one(Welcome),
            banner=self.query_one(EngineBanner),
            status=self.query_one(StatusLine),
            title=self.query_one(TitleBar),
            latency=self._latency,
            residual=self._residual,
            notify=self._notify,
        )
        self.set_interval(1 / DRAINS_A_SECOND, self.drain)
        self.set_interval(1 / PANELS_A_SECOND, self._refresh_figures)
        self.set_interval(1.0, session.look_after)

    async def drain(self) -> None:
        """Bring the screen up to date with the session."""
        session, presenter = self.session, self.presenter
        if session is None or presenter is None:
            return
        await presenter.drain()
        if session.busy != self._was_busy:
            self._was_busy = session.busy
            self.refresh_bindings()
        composer = self.query_one(Composer)
        if composer.waiting and session.can_send:
            self._send(composer.text)

    # -- sending ---------------------------------------------------------------------------------------

    @on(Composer.Submitted)
    def _submitted(self, event: Composer.Submitted) -> None:
        self._send(event.text)

    def _send(self, text: str) -> None:
        composer = self.query_one(Composer)
        if not text.strip():
            return
        session = self.session
        if session is not None and session.submit(text):
            composer.wait_for("")
            composer.clear()
        elif session is not None and session.busy:
            composer.wait_for("after this answer")
        else:
            composer.wait_for("when the engine is ready")

    # -- keys ------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "stop":
            return (self.session is not None and self.session.busy) or self.query_one(Composer).waiting
        return True

    def action_stop(self) -> None:
        self.query_one(Composer).wait_for("")
        if self.session is not None:
            self.session.stop()

    async def action_interrupt(self) -> None:
        """Copies what is selected, else stops the answer, else clears the input, else asks about quitting."""
        composer = self.query_one(Composer)
        selected = composer.selected_text if composer.has_focus else ""
        selected = selected or self.get_selected_text() or ""
        if selected:
            self.clear_selection()
            self._copy(selected)
        elif self.session is not None and self.session.busy:
            self.action_stop()
        elif composer.text:
            composer.wait_for("")
            composer.clear()
        else:
            from dsv4chat.app.screens.quit_screen import QuitScreen

            self.app.push_screen(QuitScreen(), lambda wanted: self.app.exit() if wanted else None)

    def action_toggle_thinking(self) -> None:
        if self.session is not None:
            settings = self.session.settings
            self.session.set_mode(not settings.thinking, settings.effort)

    def action_choose_effort(self) -> None:
        if self.session is None:
            return
        from dsv4chat.app.screens.effort_screen import EffortScreen

        session = self.session

        def chosen(effort: str | None) -> None:
            if effort is not None:
                session.set_mode(True, effort or None)

        self.app.push_screen(EffortScreen(session.settings.effort), chosen)

    def action_unfold(self) -> None:
        transcript = self.query_one(Transcript)
        transcript.set_unfolded(not transcript.unfolded)

    def action_new_conversation(self) -> None:
        if self.session is not None:
            self.session.new_conversation()
            self.query_one(Composer).focus()

    async def action_conversations(self) -> None:
        if self.session is None:
            return
        from dsv4chat.app.screens.conversations_screen import ConversationsScreen

        session = self.session
        current = session.record.id if session.record else None

        def chosen(conversation: int | None) -> None:
            if conversation is not None and conversation != current:
                session.open_conversation(conversation)

        self.app.push_screen(ConversationsScreen(await session.summaries(), current), chosen)

    def action_toggle_panels(self) -> None:
        self.toggle_class("-no-panels")
        self._refresh_figures(force=True)

    def action_help(self) -> None:
        from dsv4chat.app.screens.help_screen import HelpScreen

        self.app.push_screen(HelpScreen())

    def action_log(self) -> None:
        from dsv4chat.app.screens.log_screen import LogScreen

        engine = self.session.link.engine if self.session is not None else None
        down = self.presenter.last_down if self.presenter is not None else None
        path = engine.log_path if engine is not None else down.log if down is not None else None
        if path is not None:
            self.app.push_screen(LogScreen(path))

    def action_restart_engine(self) -> None:
        if self.session is not None:
            self.session.start_engine()

    def action_page(self, direction: int) -> None:
        transcript = self.query_one(Transcript)
        if direction < 0:
            transcript.scroll_page_up(animate=False)
        else:
            transcript.scroll_page_down(animate=False)

    def action_beginning(self) -> None:
        self.query_one(Transcript).scroll_home(animate=False)

    def action_end(self) -> None:
        self.query_one(Transcript).to_end()

    # -- what widgets say ------------------------------------------------------------------------------

    @on(Transcript.FellBehind)
    def _fell_behind(self, event: Transcript.FellBehind) -> None:
        below = self.query_one("#below", Static)
        below.display = event.tokens > 0
        below.update(Content(f"↓ {plural(event.tokens, 'new token')} · End"))

    def on_thinking_view_toggled(self, event: object) -> None:
        view = getattr(event, "view", None)
        if view is not None:
            view.unfolded = not view.unfolded

    def on_markdown_link_clicked(self, event: object) -> None:
        """A link of an answer is never opened by itself: it is copied."""
        href = str(getattr(event, "href", ""))
        if href:
            self._copy(href)

    def _refresh_figures(self, force: bool = False) -> None:
        presenter = self.presenter
        if presenter is None or not (force or presenter.figures_changed):
            return
        presenter.figures_changed = False
        for widget in (*self.query_one("#panels").children, self.query_one(MetricsLine)):
            widget.refresh()

    def _copy(self, text: str) -> None:
        from dsv4chat.app.clipboard import copy

        def work() -> None:
            copied = copy(text)
            self.app.call_from_thread(self._copied, copied.sentence, copied.escape, copied.certain)

        self.run_worker(work, thread=True, exclusive=True, group="clipboard")

    def _copied(self, sentence: str, escape: str, certain: bool) -> None:
        driver = self.app._driver
        if escape and driver is not None:
            driver.write(escape)
        self._notify(sentence, "information" if certain else "warning")

    def _notify(self, sentence: str, severity: str) -> None:
        if severity == "error":
            self.notify(sentence, severity="error", markup=False, timeout=10)
        elif severity == "warning":
            self.notify(sentence, severity="warning", markup=False, timeout=10)
        else:
            self.notify(sentence, markup=False)
