"""The tools of `dsv4chat ask --tools`: the same loop as the app's, with questions on the terminal."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from dsv4chat.encoding import Conversation, Message, ToolCall
from dsv4chat.settings import ToolsSettings
from dsv4chat.settings_file import settings_path
from dsv4chat.tool_events import ToolDone
from dsv4chat.tool_loop import ToolLimits, ToolLoop
from dsv4chat.tools import load_toolbox
from dsv4chat.visible import visible


class AskTools:
    """yes: every call may run; otherwise the person is asked, and without a terminal none runs."""

    def __init__(self, output: Any, tools: ToolsSettings, *, yes: bool) -> None:
        try:
            folder = settings_path().parent
        except OSError:
            folder = None
        self._toolbox = load_toolbox(tools.functions, folder)
        for trouble in self._toolbox.troubles:
            output.notice(trouble)
        self._output = output
        self._yes = yes
        limits = ToolLimits(tools.rounds, tools.seconds, tools.characters)
        self._loop = ToolLoop(self._toolbox, self._approve, output.tool, limits)

    def stop(self) -> None:
        """Give up the call that waits or runs; no answer follows."""
        self._loop.stop()

    async def answer(
        self, conversation: Conversation, say: Callable[[Conversation], Awaitable[Message | None]]
    ) -> None:
        """Answers and calls in turn. say: has the model answer; None when it did not come to its own end."""
        messages = list(conversation.messages)

        async def answer() -> Message | None:
            asked = replace(conversation, messages=tuple(messages), tools=self._toolbox.definitions)
            message = await say(asked)
            if message is not None:
                messages.append(message)
            return message

        async def take(done: ToolDone) -> None:
            messages.append(done.message)

        await self._loop.run(answer, take)

    async def _approve(self, call: ToolCall) -> bool:
        if self._yes:
            return True
        if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()):
            self._output.notice(f"({call.name} is not run: nobody can be asked; --yes allows all tools)")
            return False
        sys.stderr.write(f"Run {visible(call.name)} {visible(call.arguments)}? [y/N] ")
        sys.stderr.flush()
        return (await _typed_line()).strip().lower() in ("y", "yes")


async def _typed_line() -> str:
    """The next line of the terminal; read without a thread, which Ctrl+C could not end."""
    loop, number = asyncio.get_running_loop(), sys.stdin.fileno()
    line: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        if not line.done():
            line.set_result(os.read(number, 4096).decode("utf-8", "replace"))

    loop.add_reader(number, read)
    try:
        return await line
    finally:
        loop.remove_reader(number)
