"""From what happens in the chat to what the screen shows: empties the session's queue in batches.

All tokens that came since the last call become one update, so that the cost of drawing does not depend on
how fast they come.
"""

from collections.abc import Callable
from pathlib import PurePath

from dsv4chat.app.context_room import ContextRoom
from dsv4chat.app.drafts import Drafts
from dsv4chat.app.events import (
    AnswerEnded,
    AnswerResumed,
    CachesMeasured,
    ChatEvent,
    ConversationShown,
    EngineDown,
    EngineHangs,
    EngineLoading,
    EngineReady,
    EngineRecovered,
    EngineStarting,
    HistoryInMemory,
    ModeChanged,
    Notice,
    PathChanged,
    PromptsRead,
    TitleChanged,
    TurnAdded,
    TurnStopped,
    TurnStopping,
)
from dsv4chat.app.garbage import Garbage
from dsv4chat.app.live_figures import LatencyFigures, ResidualFigures
from dsv4chat.app.prompt_history import PromptHistory
from dsv4chat.app.session import ChatSession
from dsv4chat.app.token_cells import live_cells
from dsv4chat.app.tool_events import (
    ApprovalOver,
    ApprovalWanted,
    CallChanged,
    ResultAdded,
    ToolsSwitched,
)
from dsv4chat.app.tool_view import ToolView
from dsv4chat.app.widgets.engine_banner import EngineBanner
from dsv4chat.app.widgets.status_line import StatusLine
from dsv4chat.app.widgets.title_bar import TitleBar
from dsv4chat.app.widgets.transcript import Transcript
from dsv4chat.app.widgets.welcome import Welcome
from dsv4chat.app.wording import short_count, size
from dsv4chat.encoding import Event as ParserEvent
from dsv4chat.encoding.events import joined
from dsv4chat.runtime.protocol import Ready
from dsv4chat.store import MessageRecord
from dsv4chat.turns import TurnFinished, TurnPrefill, TurnStarted, TurnToken
from dsv4chat.visible import visible


class ChatPresenter:
    """Applies the events of `session` to the widgets it is given; notify(sentence, severity) shows one."""

    def __init__(
        self,
        session: ChatSession,
        *,
        transcript: Transcript,
        welcome: Welcome,
        banner: EngineBanner,
        status: StatusLine,
        title: TitleBar,
        latency: LatencyFigures,
        residual: ResidualFigures,
        prompts: PromptHistory,
        drafts: Drafts,
        tools: ToolView,
        notify: Callable[[str, str], None],
    ) -> None:
        self._session = session
        self._transcript = transcript
        self._welcome = welcome
        self._banner = banner
        self._status = status
        self._title = title
        self._latency = latency
        self._residual = residual
        self._prompts = prompts
        self._drafts = drafts
        self._tools = tools
        self._notify = notify
        self._room = ContextRoom()
        self.garbage = Garbage()
        self._conversation: int | None = None
        self._pieces: list[ParserEvent] = []
        self._cells: list[TurnToken] = []
        self._tokens = 0
        self._thought = 0
        self._thought_seconds = 0.0
        self.figures_changed = False
        self.last_down: EngineDown | None = None

    async def drain(self) -> bool:
        """Show everything that has happened since the last call; whether anything had."""
        events = self._session.events
        count = len(events)
        for _ in range(count):
            event = events.popleft()
            if isinstance(event, TurnToken):
                self._token(event)
            else:
                await self._flush()
                await self._show(event)
        await self._flush()
        if count:
            self.garbage.busy(made=True)
        return count > 0

    def _token(self, token: TurnToken) -> None:
        self._pieces += token.events
        self._cells.append(token)
        self._tokens += 1
        if token.kind == "reasoning":
            self._thought += 1
            self._thought_seconds += token.milliseconds / 1000
        self._latency.token(token.milliseconds)
        self._residual.token(token.residual)
        self.figures_changed = True

    async def _flush(self) -> None:
        if not self._tokens:
            return
        pieces, self._pieces = joined(self._pieces), []
        tokens, self._tokens = self._tokens, 0
        self._status.used += tokens
        thought, self._thought = self._thought, 0
        spent, self._thought_seconds = self._thought_seconds, 0.0
        cells, self._cells = self._cells, []
        live, text = self._transcript.live, self._session.link.text
        if live is not None and thought:
            await live.count_thinking(thought, spent)
        if live is not None and text is not None:
            await live.add_cells(live_cells(cells, text.tokenizer))
        await self._transcript.feed(pieces, tokens)

    async def _show(self, event: ChatEvent) -> None:
        match event:
            case TurnAdded(user, answer, branches):
                self._latency.begin_turn(None)
                self._conversation = answer.conversation
                self._drafts.sent(answer.conversation)
                await self._transcript.begin(user, answer, branches)
            case AnswerResumed(answer):
                self._latency.begin_turn(None)
                await self._transcript.resume(answer)
            case PathChanged(path, branches, seen):
                await self._transcript.change(path, branches, seen)
                self._used(path)
            case PromptsRead(texts):
                self._prompts.extend_back(texts)
            case TitleChanged(title):
                self._title.title = title
            case TurnStarted(prompt_tokens):
                self._latency.begin_turn(prompt_tokens)
                self._status.used = prompt_tokens
                self.figures_changed = True
                if self._transcript.live is not None:
                    self._transcript.live.progress(f"Reading {prompt_tokens:,} tokens")
            case TurnPrefill():
                self._prefill(event)
            case TurnFinished():
                await self._finished(event)
            case AnswerEnded(answer, rest):
                self._status.activity = ""
                await self._transcript.end(answer, rest)
            case ConversationShown(record, path, branches, seen):
                self._drafts.show(record.id if record else None)
                self._clear_figures(record.id if record else None)
                self._status.cached = self._session.warm.bytes_of_open(self._session.warm.latest)
                await self._transcript.show(path, branches, seen)
                self._used(path)
                self._title.title = record.title if record else ""
            case ModeChanged(thinking, effort):
                self._status.thinking, self._status.effort = thinking, effort
            case EngineStarting():
                self._title.model = ""
                self._banner.show_starting()
            case EngineLoading(progress):
                self._banner.show_loading(progress)
            case EngineReady(ready, profile):
                self._ready(ready, profile)
            case EngineDown():
                self.last_down = event
                self._title.model = "no engine"
                self._banner.show_failed(event.sentence, "F5")
            case EngineHangs(sentence):
                self._banner.show_hanging(sentence, "F5")
            case EngineRecovered():
                self._banner.hide()
            case TurnStopping():
                self._status.activity = "stopping…"
            case TurnStopped():
                self._status.activity = ""
            case CachesMeasured(caches):
                self._status.cached = self._session.warm.bytes_of_open(caches)
            case Notice(sentence, severity):
                self._notify(sentence, severity)
            case HistoryInMemory(sentence):
                self._status.warning = "history not saved"
                self._notify(sentence, "warning")
            case ToolsSwitched() | ApprovalWanted() | ApprovalOver() | CallChanged() | ResultAdded():
                await self._tools.show(event)
            case TurnToken():
                self._token(event)

    async def _finished(self, event: TurnFinished) -> None:
        figures = event.figures
        self._latency.end_turn(figures.tokens_per_second)
        self._latency.reused = figures.reused
        self._latency.first_token = figures.ttft_ms
        self._latency.prefill = figures.prefill_ms
        self._latency.first_decode = figures.first_decode_ms
        self._status.used = figures.prompt_tokens + figures.tokens
        self._look_at_room()
        self.figures_changed = True
        await self._transcript.feed(event.events, 0)

    def _look_at_room(self) -> None:
        record = self._session.record
        number = record.id if record else None
        sentence = self._room.warning(number, self._status.used, self._status.room)
        if sentence:
            self._notify(sentence, "warning")

    def _prefill(self, event: TurnPrefill) -> None:
        self._latency.reused, self._latency.fed = event.reused, event.done
        self.figures_changed = True
        if self._transcript.live is not None and event.done < event.total:
            self._transcript.live.progress(f"Reading {event.done:,} of {event.total:,} tokens")

    def _clear_figures(self, conversation: int | None) -> None:
        """Those of another conversation than the one shown so far."""
        if conversation != self._conversation:
            self._conversation = conversation
            self._latency.clear()
            self._residual.clear()
            self.figures_changed = True

    def _used(self, path: tuple[MessageRecord, ...]) -> None:
        """The context meter, as far as the last answer of the path tells."""
        last = next((record.generation for record in reversed(path) if record.generation), None)
        self._status.used = ((last.prompt_tokens or 0) + (last.tokens or 0)) if last else 0

    def _ready(self, ready: Ready, profile: str) -> None:
        self.garbage.settle()
        self._banner.hide()
        self._status.room = ready.max_context
        self._residual.reset(ready.layer_kinds)
        name = PurePath(ready.model).name or ready.model
        self._title.model = visible(f"{name} · {ready.device}")
        self._welcome.show_model(
            visible(
                f"{name}: {short_count(ready.parameters)} parameters in {ready.layers} layers, "
                f"{size(ready.weight_bytes)} on {ready.device} · prompt profile {profile}"
            )
        )
