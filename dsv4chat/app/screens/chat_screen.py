"""The chat: transcript, input, panels. This is layout and what is sent; keys are in `chat_keys.py`."""

import time
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.css.query import NoMatches
from textual.widget import MountError
from textual.widgets import Static

from dsv4chat.app.commands import parse
from dsv4chat.app.live_figures import LatencyFigures, ResidualFigures
from dsv4chat.app.prompt_history import PromptHistory
from dsv4chat.app.screens.chat_commands import ChatCommands
from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.approval_bar import ApprovalBar
from dsv4chat.app.widgets.command_offers import CommandOffers
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.app.widgets.engine_banner import EngineBanner
from dsv4chat.app.widgets.key_line import KeyLine
from dsv4chat.app.widgets.latency_panel import LatencyPanel
from dsv4chat.app.widgets.metrics_line import MetricsLine
from dsv4chat.app.widgets.plain_boxes import PlainArea, PlainColumn, PlainRow
from dsv4chat.app.widgets.residual_panel import ResidualPanel
from dsv4chat.app.widgets.status_line import StatusLine
from dsv4chat.app.widgets.title_bar import TitleBar
from dsv4chat.app.widgets.transcript import Transcript
from dsv4chat.app.widgets.waiting_messages import WaitingMessages
from dsv4chat.app.widgets.welcome import Welcome
from dsv4chat.app.wording import plural

if TYPE_CHECKING:
    from dsv4chat.app.drafts import Drafts
    from dsv4chat.app.message_actions import MessageActions
    from dsv4chat.app.presenter import ChatPresenter
    from dsv4chat.app.session import ChatSession
    from dsv4chat.app.widgets.branch_mark import BranchWanted

DRAINS_A_SECOND = 20
PANELS_A_SECOND = 4
PANELS_AFTER = 0.02  # seconds after text was drawn: not with it, so that a key waits for one of both at most
MOST_REST = 0.2  # seconds


class ChatScreen(ChatCommands):
    """Works without a session: then what is typed waits for it."""

    DEFAULT_CSS = beside(__file__)
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-middle"), (100, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (20, "-low"), (29, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "Stop", id="stop"),
        Binding("escape", "leave", "To the input", show=False, id="leave"),
        Binding("ctrl+t", "toggle_thinking", "Thinking", id="thinking"),
        Binding("ctrl+g", "choose_effort", "Effort", id="effort"),
        Binding("ctrl+r", "unfold", "Unfold", id="unfold", tooltip="Show or hide what the model thinks"),
        Binding("ctrl+n", "new_conversation", "New", id="new"),
        Binding("ctrl+o", "conversations", "Chats", id="conversations"),
        Binding("f2", "this_conversation", "This conversation", show=False, id="this"),
        Binding("f3", "toggle_tools", "Tools", id="tools", tooltip="Tools on or off"),
        Binding("ctrl+f", "find", "Find", show=False, priority=True, id="find"),
        Binding("f6", "editor", "Your editor", show=False, priority=True, id="editor"),
        Binding("f7", "copy_code", "Copy code", show=False, priority=True, id="copy_code"),
        Binding("f8", "settings", "Settings", show=False, id="settings"),
        Binding("ctrl+b", "toggle_panels", "Panels", id="panels"),
        Binding("f1", "help", "Help", id="help"),
        Binding("ctrl+c", "interrupt", "Copy, stop, clear, quit", show=False, priority=True, id="interrupt"),
        Binding("ctrl+d", "ask_to_quit", "Quit, with an empty input", show=False, id="ask_to_quit"),
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
        self.message_actions: MessageActions | None = None
        self.drafts: Drafts | None = None
        self.prompts = PromptHistory()
        self._latency = LatencyFigures()
        self._residual = ResidualFigures()
        self._was_busy = False
        self._rest_until = self._text_drawn = self._figures_due = 0.0

    def compose(self) -> ComposeResult:
        yield TitleBar()
        with PlainRow(id="main"):
            with PlainColumn(id="chat"):
                with PlainArea(id="conversation"):
                    yield Transcript(Welcome(), id="transcript")
                    yield Static("", markup=False, id="below")
                yield EngineBanner()
                yield MetricsLine(self._latency, self._residual)
                yield WaitingMessages()
                yield ApprovalBar()
                yield CommandOffers()
                yield Composer(id="composer")
                yield StatusLine()
            with PlainColumn(id="panels"):
                yield LatencyPanel(self._latency)
                yield ResidualPanel(self._residual)
        yield KeyLine(first="stop")

    def on_mount(self) -> None:
        self.query_one(EngineBanner).show_starting()
        composer = self.query_one(Composer)
        composer.recall = self._recall
        composer.suggestions = self.query_one(CommandOffers)
        self.query_one(ApprovalBar).set_input(composer)
        composer.focus()

    def attach(self, session: "ChatSession") -> None:
        """Show a session from now on."""
        from dsv4chat.app.drafts import SECONDS, Drafts
        from dsv4chat.app.looking import cells_of
        from dsv4chat.app.message_actions import MessageActions
        from dsv4chat.app.presenter import ChatPresenter
        from dsv4chat.app.tool_view import ToolView

        self.session = session
        self.drafts = Drafts(session, self.query_one(Composer), self.query_one(WaitingMessages))
        self.presenter = ChatPresenter(
            session,
            transcript=self.query_one(Transcript),
            welcome=self.query_one(Welcome),
            banner=self.query_one(EngineBanner),
            status=self.query_one(StatusLine),
            title=self.query_one(TitleBar),
            latency=self._latency,
            residual=self._residual,
            prompts=self.prompts,
            drafts=self.drafts,
            tools=ToolView(
                self.query_one(Transcript),
                self.query_one(ApprovalBar),
                self.query_one(StatusLine),
                self.query_one(Composer),
            ),
            notify=self.say,
        )
        self.query_one(Transcript).messages.read_cells = partial(cells_of, session)
        self.message_actions = MessageActions(
            session,
            self.query_one(Composer),
            copy=self.copy_text,
            look=self.look_inside,
            notify=self.say,
        )
        self.set_interval(1 / DRAINS_A_SECOND, self.drain)
        self.set_interval(1 / PANELS_A_SECOND, self._catch_up_figures)
        self.set_interval(1.0, session.look_after)
        self.set_interval(1.0, self._look_for_garbage)
        self.set_interval(SECONDS, self.drafts.save)

    async def drain(self) -> None:
        """Bring the screen up to date with the session."""
        session, presenter = self.session, self.presenter
        if session is None or presenter is None:
            return
        begun = time.monotonic()
        if begun < self._rest_until:
            return
        try:
            if await presenter.drain():
                self.call_after_refresh(self._drawn, begun)
        except (MountError, NoMatches):
            if not self.app._exit:
                raise
            return  # the program is being left: half of the screen is gone already
        if session.busy != self._was_busy:
            self._was_busy = session.busy
            self.refresh_bindings()
        waiting = self.query_one(WaitingMessages)
        if len(waiting) and session.can_send:
            text = waiting.next()
            if text is not None and not session.submit(text):
                waiting.put_first(text)

    def _look_for_garbage(self) -> None:
        if self.presenter is not None and self.session is not None and not self.session.busy:
            self.presenter.garbage.look()

    def _drawn(self, begun: float) -> None:
        """Drawing is to leave as much time to keys as it takes itself, on however slow a machine."""
        now = time.monotonic()
        self._rest_until = now + min(MOST_REST, now - begun)
        self._text_drawn = now
        if now >= self._figures_due:
            self._figures_due = now + 1 / PANELS_A_SECOND
            self.set_timer(PANELS_AFTER, self.refresh_figures)

    # -- sending ---------------------------------------------------------------------------------------

    @on(Composer.Submitted)
    async def _submitted(self, event: Composer.Submitted) -> None:
        composer, session, text = event.composer, self.session, event.text
        if not text.strip():
            return
        if composer.editing is None and parse(text) is not None:
            composer.clear_sent()
            if not await self.carry_out(text):
                composer.set_text(f"{text}{composer.text}")
            return
        if composer.editing is not None:
            if session is None:
                return
            if not session.tree.holds(composer.editing):
                composer.end_edit()
                composer.bring_back(text)
                self.say("That message is not here any more. Enter sends this as a new one.", "warning")
            elif session.tree.edit(composer.editing, text):
                self.prompts.add(text)
                composer.end_edit()
            return
        self.prompts.add(text)
        if session is None or not session.submit(text):
            self.query_one(WaitingMessages).add(text, _until(session))
            self.refresh_bindings()
        composer.clear_sent()

    def _recall(self, direction: int, text: str) -> str | None:
        waiting = self.query_one(WaitingMessages)
        if direction < 0 and not text and len(waiting):
            return waiting.take_back()
        return self.prompts.back(text) if direction < 0 else self.prompts.forward(text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "stop":
            busy = self.session is not None and self.session.busy
            return busy or len(self.query_one(WaitingMessages)) > 0
        return True

    # -- what widgets say ------------------------------------------------------------------------------

    @on(Transcript.Asked)
    def _asked(self, event: Transcript.Asked) -> None:
        if self.message_actions is not None:
            self.message_actions.do(event.action, event.record)

    def on_branch_wanted(self, event: "BranchWanted") -> None:
        if self.message_actions is not None:
            self.message_actions.switch(event.message, event.step)

    @on(Transcript.FellBehind)
    def _fell_behind(self, event: Transcript.FellBehind) -> None:
        below = self.query_one("#below", Static)
        below.display = event.tokens > 0
        key = "Ctrl+End" if self.query_one(Composer).text else "End"  # which is for the input's text then
        below.update(Content(f"↓ {plural(event.tokens, 'new token')} · {key}"))

    def on_thinking_view_toggled(self, event: object) -> None:
        view = getattr(event, "view", None)
        if view is not None:
            view.unfolded = not view.unfolded

    def on_markdown_link_clicked(self, event: object) -> None:
        """A link of an answer is never opened by itself: it is copied."""
        href = str(getattr(event, "href", ""))
        if href:
            self.copy_text(href)

    # -- for the keys ----------------------------------------------------------------------------------

    def refresh_figures(self, force: bool = False) -> None:
        presenter = self.presenter
        if presenter is None or not (force or presenter.figures_changed):
            return
        presenter.figures_changed = False
        for widget in (*self.query_one("#panels").children, self.query_one(MetricsLine)):
            widget.refresh()

    def _catch_up_figures(self) -> None:
        """The figures that came with the last text."""
        if time.monotonic() - self._text_drawn > 5 * PANELS_AFTER:
            self.refresh_figures()

    def copy_text(self, text: str) -> None:
        from dsv4chat.app.clipboard import copy

        def work() -> None:
            copied = copy(text)
            self.app.call_from_thread(self._copied, copied.sentence, copied.escape, copied.certain)

        self.run_worker(work, thread=True, exclusive=True, group="clipboard")

    def _copied(self, sentence: str, escape: str, certain: bool) -> None:
        driver = self.app._driver
        if escape and driver is not None:
            driver.write(escape)
        self.say(sentence, "information" if certain else "warning")

    def say(self, sentence: str, severity: str = "information") -> None:
        if severity == "error":
            self.notify(sentence, severity="error", markup=False, timeout=10)
        elif severity == "warning":
            self.notify(sentence, severity="warning", markup=False, timeout=10)
        else:
            self.notify(sentence, markup=False)


def _until(session: "ChatSession | None") -> str:
    """When a message will be sent that cannot be sent now."""
    if session is not None and session.opened.switching:
        return "when the other conversation is there"
    if session is not None and session.elsewhere.writing:
        return "after the answer that another window writes"
    return "after this answer" if session is not None and session.busy else "when the engine is ready"
