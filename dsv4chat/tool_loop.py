"""Answers and tool calls in turn, until an answer calls no tool: the loop of `dsv4chat ask` and of the app.

Knows no widget and no history. Whoever uses it gives two functions: one that lets the model answer, one that
takes a result into the conversation. Every call gets a result, whatever happens (invalid, refused, failed,
stopped), so that the conversation stays well formed.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from dsv4chat.encoding import Message, ToolCall
from dsv4chat.tool_events import RoundsUsedUp, ToolDone, ToolEvent, ToolRunning
from dsv4chat.tools import Toolbox, ToolError
from dsv4chat.tools.running import run_tool


@dataclass(frozen=True)
class ToolLimits:
    """rounds: of calls for one message of the person. seconds: for one call. characters: of a result."""

    rounds: int = 8
    seconds: float = 30.0
    characters: int = 20_000


class ToolLoop:
    """One message's answers and calls; used once. approve: may this call run? post: takes the events."""

    def __init__(
        self,
        toolbox: Toolbox,
        approve: Callable[[ToolCall], Awaitable[bool]],
        post: Callable[[ToolEvent], None],
        limits: ToolLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._toolbox = toolbox
        self._approve = approve
        self._post = post
        self._limits = limits or ToolLimits()
        self._clock = clock
        self._stopped = False
        self._work: asyncio.Task[ToolDone] | None = None

    def stop(self) -> None:
        """End the loop: the call that waits or runs is given up, and no answer follows."""
        self._stopped = True
        if self._work is not None:
            self._work.cancel()

    async def run(
        self,
        answer: Callable[[], Awaitable[Message | None]],
        take: Callable[[ToolDone], Awaitable[None]],
    ) -> None:
        """answer: the model's next answer; None when it did not come to its own end. take: keeps a result."""
        rounds = 0
        while not self._stopped:
            message = await answer()
            if message is None or not message.tool_calls:
                return
            rounds += 1
            used_up = rounds > self._limits.rounds
            if used_up and rounds == self._limits.rounds + 1:
                self._post(RoundsUsedUp(self._limits.rounds))
            for call in message.tool_calls:
                done = self._too_many(call) if used_up else await self._result(call)
                self._post(done)
                await take(done)
            if rounds > self._limits.rounds + 1:
                return

    async def _result(self, call: ToolCall) -> ToolDone:
        """The result of a call; `stop` cancels it alone, not the loop."""
        if self._stopped:
            return _stopped(call)
        self._work = asyncio.create_task(self._call(call))
        try:
            return await self._work
        except asyncio.CancelledError:
            if not self._stopped:
                self._work.cancel()
                raise
            return _stopped(call)
        finally:
            self._work = None

    async def _call(self, call: ToolCall) -> ToolDone:
        if not call.valid:
            return ToolDone(call, f"Error: {call.error or 'the call cannot be read'}", "invalid")
        tool = self._toolbox.get(call.name)
        if tool is None:
            names = ", ".join(self._toolbox.names) or "none"
            return ToolDone(call, f"Error: there is no tool {call.name}; the tools are: {names}", "invalid")
        try:
            arguments = tool.checked(call.arguments)
        except ToolError as error:
            return ToolDone(call, f"Error: {error}", "invalid")
        if not await self._approve(call):
            return ToolDone(call, "Error: the user does not allow this call", "refused")
        self._post(ToolRunning(call))
        started = self._clock()
        try:
            text = await run_tool(
                tool, arguments, seconds=self._limits.seconds, characters=self._limits.characters
            )
        except ToolError as error:
            return ToolDone(call, f"Error: {error}", "error", self._clock() - started)
        return ToolDone(call, text, "done", self._clock() - started)

    def _too_many(self, call: ToolCall) -> ToolDone:
        rounds = self._limits.rounds
        return ToolDone(
            call,
            f"Error: not run, as there were {rounds} rounds of calls already; answer with what you have",
            "refused",
        )


def _stopped(call: ToolCall) -> ToolDone:
    return ToolDone(call, "Error: the user stopped this", "stopped")
