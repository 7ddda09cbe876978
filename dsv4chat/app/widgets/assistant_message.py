"""One answer on the screen: what is going on, thinking, text, tool calls, and how it ended."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click
from textual.widgets import Static

from dsv4chat.app.styles import beside
from dsv4chat.app.token_cells import TokenCell
from dsv4chat.app.widgets.answer_text import AnswerText
from dsv4chat.app.widgets.branch_mark import branch_mark, clicked_arrow
from dsv4chat.app.widgets.coloured_answer import ColouredAnswer
from dsv4chat.app.widgets.settled_size import SettledColumn
from dsv4chat.app.widgets.thinking_view import ThinkingView
from dsv4chat.app.widgets.tool_card import ToolCard
from dsv4chat.app.wording import milliseconds, plural, rate
from dsv4chat.encoding import AnswerText as AnswerPiece
from dsv4chat.encoding import Event, ReasoningText, ToolCallArgument, ToolCallEnd, ToolCallStart
from dsv4chat.store import Branch, MessageRecord
from dsv4chat.visible import visible

_ENDS = {
    "stopped": "stopped",
    "interrupted": "interrupted: the program ended before the answer did",
    "length": "cut off: the length limit was reached",
    "failed": "ended by an error",
    "writing": "being written by another window",
}


class AssistantMessage(SettledColumn, Vertical):
    """An answer: of a finished record, or (`live`) one that is fed with events until `end`.

    A live one whose record has text already is an answer that is continued.
    """

    DEFAULT_CSS = beside(__file__)
    BLANK = True  # nothing of its own is drawn, which Textual then does at no cost

    def __init__(
        self,
        record: MessageRecord,
        branch: Branch | None = None,
        *,
        live: bool = False,
        unfolded: bool = False,
        coloured: bool = False,
    ) -> None:
        super().__init__()
        self.record = record
        self.live = live
        self._colours = ColouredAnswer(self, coloured)
        self._branch = branch
        self._unfolded = unfolded
        self._progress = Static("", markup=False, classes="progress")
        self._thinking: ThinkingView | None = None
        self._answer: AnswerText | None = None
        self._cards: dict[int, ToolCard] = {}
        self._outcome = Static("", markup=False, classes="outcome")

    def compose(self) -> ComposeResult:
        record = self.record
        yield self._progress
        if not self.live:
            text = record.content
            if record.reasoning and not _offered(record):
                tokens, spent = _thought(record)
                yield ThinkingView(record.reasoning, tokens=tokens, spent=spent, unfolded=self._unfolded)
            elif record.reasoning:
                text = record.reasoning
            if text:
                yield AnswerText(text)
            said = dict(enumerate(record.approvals))
            for position, call in enumerate(record.tool_calls):
                yield ToolCard(call.name, call, said.get(position))
        yield self._outcome

    async def on_mount(self) -> None:
        if not self.live:
            self._show_outcome()
            return
        record = self.record
        if record.reasoning:
            await self.count_thinking(*_thought(record))
            await self.feed([ReasoningText(record.reasoning)])
        if record.content:
            await self.feed([AnswerPiece(record.content)])
        self.progress("Preparing the prompt")
        self._show_branch()

    def on_click(self, event: Click) -> None:
        clicked_arrow(event, self.record.id, self)

    async def add_cells(self, cells: Sequence[TokenCell]) -> None:
        """The tokens behind what `feed` is given, in their order."""
        await self._colours.add(cells)

    async def set_coloured(self, coloured: bool, cells: Sequence[TokenCell] = ()) -> None:
        """Show tokens coloured by surprise instead of the finished text, or no more.

        cells: its tokens from the history; of one that is being written those it had before.
        """
        await self._colours.set(coloured, cells)

    def set_branch(self, branch: Branch | None) -> None:
        """Where it stands among the branches at its place."""
        if branch != self._branch:
            self._branch = branch
            if self.live:
                self._show_branch()
            else:
                self._show_outcome()

    def set_unfolded(self, unfolded: bool) -> None:
        """Fold or unfold its thinking, also one that is still to come."""
        self._unfolded = unfolded
        if self.thinking is not None:
            self.thinking.unfolded = unfolded

    @property
    def thinking(self) -> ThinkingView | None:
        """Its thinking, if there is any so far."""
        return self._thinking or next(iter(self.query_children(ThinkingView)), None)

    def progress(self, sentence: str) -> None:
        """What happens before the first token; "" hides the line."""
        self._progress.display = bool(sentence)
        if sentence:
            self._progress.update(Content(f"{sentence}…"), layout=False)

    async def feed(self, events: Sequence[Event]) -> None:
        """What the parser made of new tokens, neighbouring texts of one kind already joined."""
        self.progress("")
        for event in events:
            if isinstance(event, ReasoningText):
                (await self._open_thinking()).add(event.text)
            elif isinstance(event, AnswerPiece):
                await self._write(event.text)
            elif isinstance(event, ToolCallStart):
                card = self._cards[event.index] = ToolCard(event.name)
                await self._close_thinking()
                await self.mount(card, before=self._outcome)
            elif isinstance(event, ToolCallArgument) and event.index in self._cards:
                self._cards[event.index].add(event.text)
            elif isinstance(event, ToolCallEnd):
                await self._end_call(event)

    async def count_thinking(self, tokens: int, spent: float) -> None:
        """More tokens of thinking and the seconds they took, whether or not they brought text."""
        (await self._open_thinking()).count(tokens, spent)

    async def end(self, record: MessageRecord, rest: Sequence[Event] = ()) -> None:
        """The answer is over; `rest` is what the parser had held back."""
        if rest:
            await self.feed(rest)
        self.record = record
        self.live = False
        self.progress("")
        await self._close_thinking()
        if _offered(record) and record.reasoning:
            if self._thinking is not None:
                await self._thinking.remove()
                self._thinking = None
            await self._write(record.reasoning)
        if self._answer is not None:
            await self._answer.finish()
        self._show_outcome()

    async def _open_thinking(self) -> ThinkingView:
        if self._thinking is None:
            self.progress("")
            self._thinking = ThinkingView(live=True, unfolded=self._unfolded)
            self._thinking.show_tokens(self._colours.of("reasoning"))
            await self.mount(self._thinking, after=self._progress)
        return self._thinking

    async def _close_thinking(self) -> None:
        if self._thinking is not None:
            self._thinking.finish()

    async def _write(self, text: str) -> None:
        if self._answer is None:
            await self._close_thinking()
            self._answer = AnswerText()
            self._answer.display = not self._colours.on
            await self.mount(self._answer, before=self._outcome)
        await self._answer.write(text)

    async def _end_call(self, event: ToolCallEnd) -> None:
        card = self._cards.get(event.index)
        if card is None:
            card = self._cards[event.index] = ToolCard(event.call.name)
            await self.mount(card, before=self._outcome)
        await card.complete(event.call)

    def _show_branch(self) -> None:
        self._outcome.update(branch_mark(self._branch))

    def _show_outcome(self) -> None:
        record = self.record
        parts = [_ENDS[record.state]] if record.state in _ENDS else []
        if _offered(record):
            parts.append("the model did not end its thinking; this is what it thought")
        made = record.generation
        if record.state == "complete" and not (record.content or record.reasoning or record.tool_calls):
            parts.append("the model ended its turn without a word")
        if made is not None and made.tokens:
            parts.append(plural(made.tokens, "token"))
            if made.tokens_per_second:
                parts.append(rate(made.tokens_per_second))
            if made.ttft_ms is not None:
                parts.append(f"first after {milliseconds(made.ttft_ms)}")
            if made.reused is not None and made.prompt_tokens:
                parts.append(f"{made.reused:,} of {made.prompt_tokens:,} reused")
        line = " · ".join(parts)
        if record.error:
            line += f"\n{visible(record.error)}"
        self.set_class(record.state == "failed", "-failed")
        self.set_class(record.state in ("stopped", "interrupted", "length"), "-partial")
        mark = branch_mark(self._branch)
        self._outcome.update(Content.assemble(mark, " · " if mark and line else "", line))


def _thought(record: MessageRecord) -> tuple[int, float]:
    """Tokens of thinking and the seconds they took."""
    made = record.generation
    return ((made.reasoning_tokens or 0), (made.reasoning_ms or 0.0) / 1000) if made else (0, 0.0)


def _offered(record: MessageRecord) -> bool:
    """Whether the model ended its turn inside its thinking: then that is most likely the answer."""
    return bool(
        record.state == "complete" and record.reasoning and not record.content and not record.tool_calls
    )
