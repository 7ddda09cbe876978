"""The tools of a session: whether they are on, answers with the calls in them, the person's approval."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from dsv4chat.app.events import Notice
from dsv4chat.app.tool_events import ApprovalOver, ApprovalWanted, CallChanged, CallState, ResultAdded
from dsv4chat.encoding import Message, ToolCall
from dsv4chat.store import MessageRecord
from dsv4chat.tool_events import RoundsUsedUp, ToolDone, ToolEvent, ToolRunning
from dsv4chat.tool_loop import ToolLimits, ToolLoop
from dsv4chat.tools import Toolbox, load_toolbox
from dsv4chat.tools.approval import Answer, Approvals, Policy

if TYPE_CHECKING:
    from dsv4chat.app.session import ChatSession


class ToolTurns:
    """Takes the place of `Answering` where an answer may call tools. load: makes the toolbox, in a thread."""

    def __init__(
        self,
        session: "ChatSession",
        load: Callable[[], Toolbox] = load_toolbox,
        limits: Callable[[], ToolLimits] = ToolLimits,
    ) -> None:
        self._session = session
        self._load = load
        self._limits = limits
        self._toolbox: Toolbox | None = None
        self._loop: ToolLoop | None = None
        self._record: MessageRecord | None = None
        self._question: asyncio.Future[Answer] | None = None

    @property
    def on(self) -> bool:
        """Whether the open conversation offers tools."""
        return bool(self._session.settings.tools)

    async def toolbox(self) -> Toolbox:
        """All tools there are; what could not be loaded is told once."""
        if self._toolbox is None:
            self._toolbox = await asyncio.to_thread(self._load)
            for trouble in self._toolbox.troubles:
                self._session.events.append(Notice(trouble, "warning"))
        return self._toolbox

    def forget_toolbox(self) -> None:
        """Load the tools anew when they are needed next."""
        self._toolbox = None

    def switch(self, on: bool) -> None:
        """Tools on or off from the next turn on, here and in new conversations; what it costs is told."""
        if on != self.on:
            self._session.begin(self._switch(on))

    async def answer(self, user: MessageRecord | None = None) -> None:
        """An answer under the end of the path, then its calls, further answers ... Raises StoreError."""
        await self._run(partial(self._session.answers.answer, user))

    async def resume(self) -> None:
        """The same, beginning with the rest of an unfinished answer."""
        await self._run(self._session.answers.resume)

    def stop(self) -> bool:
        """Give up the call that waits or runs, and let no answer follow; False if there is no such turn."""
        if self._loop is None:
            return False
        self._loop.stop()
        return True

    def decide(self, answer: Answer) -> None:
        """The person's answer to `ApprovalWanted`."""
        if self._question is not None and not self._question.done():
            self._question.set_result(answer)

    # -- inside ----------------------------------------------------------------------------------------

    async def _switch(self, on: bool) -> None:
        session = self._session
        tools = [dict(one) for one in (await self.toolbox()).definitions] if on else []
        session.set_tools(tools)
        if on:
            names = ", ".join(str(tool["name"]) for tool in tools)
            session.events.append(Notice(f"Tools are on: {names}. You are asked before one is run."))
        else:
            session.events.append(Notice("Tools are off."))

    async def _run(self, first: Callable[[], Awaitable[MessageRecord | None]]) -> None:
        session = self._session
        if not self.on:
            record = await first()
            if record is not None and record.tool_calls:
                session.events.append(Notice("The model called a tool, but tools are off.", "warning"))
            return
        kept = await session.ask(lambda history: history.approvals())
        policies: dict[str, Policy] = {
            name: "always" if decision == "always" else "never" for name, decision in (kept or {}).items()
        }
        approvals = Approvals(policies, self._ask, self._keep)
        self._loop = ToolLoop(await self.toolbox(), approvals, self._tell, self._limits())
        begun = False

        async def answer() -> Message | None:
            nonlocal begun
            record = self._record = await (session.answers.answer() if begun else first())
            begun = True
            if record is None or record.state != "complete":
                return None
            return Message("assistant", record.content, tool_calls=record.tool_calls)

        try:
            await self._loop.run(answer, self._take)
        finally:
            self._loop = self._record = None

    async def _take(self, done: ToolDone) -> None:
        """A result becomes a message of the conversation."""
        session, parent = self._session, self._session.path[-1]
        record = await session.store.run(
            lambda history: history.add_message(
                parent.conversation, parent.id, "tool", done.result, tool_call_id=done.call.id
            )
        )
        session.path.append(record)
        session.events.append(ResultAdded(record))

    def _tell(self, event: ToolEvent) -> None:
        if isinstance(event, RoundsUsedUp):
            self._session.events.append(
                Notice(f"The model called tools {event.rounds} times; now it has to answer.", "warning")
            )
        elif self._record is not None:
            at = self._position(event.call)
            if at is not None:
                state: CallState = "running" if isinstance(event, ToolRunning) else event.outcome
                seconds = event.seconds if isinstance(event, ToolDone) else None
                self._session.events.append(CallChanged(self._record.id, at, state, seconds))

    async def _ask(self, call: ToolCall) -> Answer:
        session, record, at = self._session, self._record, self._position(call)
        self._question = asyncio.get_running_loop().create_future()
        if record is not None and at is not None:
            session.events.append(CallChanged(record.id, at, "waiting", None))
        session.events.append(ApprovalWanted(call))
        try:
            answer = await self._question
        finally:
            self._question = None
            session.events.append(ApprovalOver())
        if record is not None and at is not None:
            decision = "never" if answer == "no" else answer
            session.store.submit(lambda history: history.decide_call(record.id, at, decision))
        return answer

    def _keep(self, tool: str, policy: Policy) -> None:
        self._session.store.submit(lambda history: history.set_approval(tool, policy))

    def _position(self, call: ToolCall) -> int | None:
        calls = self._record.tool_calls if self._record is not None else ()
        return next((at for at, other in enumerate(calls) if other is call), None)
