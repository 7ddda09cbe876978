"""What `dsv4chat ask` prints: text for people and pipes, or one JSON object a line for programs."""

import os
import sys
from typing import Any, Protocol, TextIO

import msgspec

from dsv4chat.encoding import AnswerText, ReasoningText, ToolCallEnd
from dsv4chat.encoding import Event as ParserEvent
from dsv4chat.runtime.protocol import Loading
from dsv4chat.tool_events import RoundsUsedUp, ToolDone, ToolEvent
from dsv4chat.turns import TurnEvent, TurnFinished, TurnPrefill, TurnToken
from dsv4chat.visible import visible

DIM, NORMAL, CLEAR_LINE = "\x1b[2m", "\x1b[22m", "\r\x1b[K"


class Output(Protocol):
    """Where the events of one question go. context: the most tokens it can have, 0 until that is known."""

    context: int

    def loading(self, progress: Loading) -> None: ...

    def notice(self, text: str) -> None: ...

    def event(self, event: TurnEvent) -> None: ...

    def rest(self, events: tuple[ParserEvent, ...]) -> None:
        """Text that was held back when the turn broke off."""

    def tool(self, event: ToolEvent) -> None: ...

    def error(self, kind: str, message: str) -> None: ...


class TextOutput:
    """The answer on standard output; thinking, dim, and everything else on standard error.

    On a terminal control characters are shown, not obeyed; into a file or pipe the answer goes as it is.
    """

    def __init__(self, *, show_thinking: bool, stats: bool, tools: bool = False) -> None:
        self.context = 0
        self._tools = tools
        self._show_thinking = show_thinking
        self._stats = stats
        self._out, self._err = sys.stdout, sys.stderr
        for stream in (self._out, self._err):
            _never_fail_on_characters(stream)
        self._out_terminal, self._err_terminal = self._out.isatty(), self._err.isatty()
        self._colour = self._err_terminal and "NO_COLOR" not in os.environ
        self._progress_shown = False
        self._in_thinking = False
        self._line_open = False  # on standard output

    def loading(self, progress: Loading) -> None:
        if self._err_terminal:
            self._write_err(CLEAR_LINE + describe_loading(progress))
            self._progress_shown = True

    def notice(self, text: str) -> None:
        self._clear_progress()
        self._write_err(f"{visible(text)}\n")

    def event(self, event: TurnEvent) -> None:
        if isinstance(event, TurnPrefill):
            if self._err_terminal and event.total > 256 and event.done < event.total:
                self._write_err(f"{CLEAR_LINE}Reading the prompt: {event.done:,} of {event.total:,} tokens")
                self._progress_shown = True
        elif isinstance(event, TurnToken):
            self.rest(event.events)
        elif isinstance(event, TurnFinished):
            self.rest(event.events)
            self._answer(event.offered_answer or "")
            self._end_lines()
            self._say_why(event)

    def rest(self, events: tuple[ParserEvent, ...]) -> None:
        for event in events:
            if isinstance(event, ReasoningText):
                self._thinking(event.text)
            elif isinstance(event, AnswerText):
                self._answer(event.text)
            elif isinstance(event, ToolCallEnd) and not self._tools:  # otherwise `tool` tells
                call = event.call
                problem = "" if call.valid else f" (not valid: {call.error})"
                self._answer(f"\n[calls {call.name}({call.arguments})]{problem}\n")

    def tool(self, event: ToolEvent) -> None:
        self._end_lines()
        if isinstance(event, ToolDone):
            self.notice(f"[{event.call.name}({event.call.arguments}): {event.result}]")
        elif isinstance(event, RoundsUsedUp):
            self.notice(f"(tools were called {event.rounds} times; now it has to answer)")

    def error(self, kind: str, message: str) -> None:
        self._end_lines()
        self._clear_progress()
        self._write_err(f"Error: {visible(message)}\n")

    def _thinking(self, text: str) -> None:
        if not text or not self._show_thinking:
            return
        self._clear_progress()
        if not self._in_thinking:
            self._in_thinking = True
            self._write_err(DIM if self._colour else "")
        self._write_err(visible(text) if self._err_terminal else text)

    def _answer(self, text: str) -> None:
        if not text:
            return
        self._clear_progress()
        self._end_thinking()
        self._out.write(visible(text) if self._out_terminal else text)
        self._out.flush()
        self._line_open = not text.endswith("\n")

    def _end_thinking(self) -> None:
        if self._in_thinking:
            self._in_thinking = False
            self._write_err((NORMAL if self._colour else "") + "\n\n")

    def _end_lines(self) -> None:
        self._end_thinking()
        if self._line_open:
            self._out.write("\n")
            self._out.flush()
            self._line_open = False

    def _say_why(self, end: TurnFinished) -> None:
        figures = end.figures
        if end.reason == "length" and figures.prompt_tokens + figures.tokens == self.context:
            self.notice(f"(cut off: the context of {self.context:,} tokens is full; --max-context sets it)")
        elif end.reason == "length":
            self.notice(f"(cut off: the limit of {figures.tokens:,} tokens was reached)")
        if self._stats:
            first = "–" if figures.ttft_ms is None else f"{figures.ttft_ms:.0f} ms"
            speed = f"{figures.tokens_per_second:.1f}" if figures.tokens else "–"
            self.notice(
                f"({figures.tokens} tokens, {speed} a second; of the prompt {figures.prefilled} read and "
                f"{figures.reused} reused; first token {first})"
            )

    def _clear_progress(self) -> None:
        if self._progress_shown:
            self._progress_shown = False
            self._write_err(CLEAR_LINE)

    def _write_err(self, text: str) -> None:
        try:
            self._err.write(text)
            self._err.flush()
        except OSError:
            pass  # nobody listens to what is only said beside the answer


class JsonOutput:
    """One JSON object a line on standard output, `event` = prefill | token | done | error."""

    def __init__(self) -> None:
        self.context = 0
        self._out = sys.stdout.buffer
        _never_fail_on_characters(sys.stderr)

    def loading(self, progress: Loading) -> None:
        pass

    def notice(self, text: str) -> None:
        _say(text)

    def event(self, event: TurnEvent) -> None:
        if isinstance(event, TurnPrefill):
            self._line(event="prefill", done=event.done, total=event.total, reused=event.reused)
        elif isinstance(event, TurnToken):
            self._line(
                event="token",
                id=event.id,
                text=event.text,
                kind=event.kind,
                logprob=event.logprob,
                ms=event.milliseconds,
                x=event.residual,
            )
        elif isinstance(event, TurnFinished):
            message, figures = event.message, event.figures
            self._line(
                event="done",
                reason=event.reason,
                prefilled=figures.prefilled,
                reused=figures.reused,
                tokens=figures.tokens,
                ttft_ms=figures.ttft_ms,
                tokens_per_second=figures.tokens_per_second,
                finish_reason=event.finish_reason,
                content=message.content,
                offered_answer=event.offered_answer,
                reasoning_content=message.reasoning,
                tool_calls=[
                    {"id": call.id, "name": call.name, "arguments": call.arguments, "valid": call.valid}
                    for call in message.tool_calls
                ],
            )

    def rest(self, events: tuple[ParserEvent, ...]) -> None:
        pass  # every token was a line of its own

    def tool(self, event: ToolEvent) -> None:
        if isinstance(event, ToolDone):
            call = event.call
            self._line(
                event="tool",
                id=call.id,
                name=call.name,
                arguments=call.arguments,
                outcome=event.outcome,
                result=event.result,
                seconds=event.seconds,
            )

    def error(self, kind: str, message: str) -> None:
        self._line(event="error", kind=kind, message=message)
        _say(f"Error: {message}")

    def _line(self, **fields: Any) -> None:
        self._out.write(msgspec.json.encode(fields) + b"\n")
        self._out.flush()


def describe_loading(progress: Loading) -> str:
    """One line: how far a load is."""
    if not progress.bytes_total:
        return f"{progress.stage} ..."
    left = "" if progress.seconds_left is None else f", {progress.seconds_left:.0f} s left"
    return (
        f"{progress.stage}: {progress.bytes_done / 1e6:,.1f} of {progress.bytes_total / 1e6:,.1f} MB, "
        f"{progress.tensors_done:,} of {progress.tensors_total:,} tensors{left}"
    )


def _say(text: str) -> None:
    try:
        sys.stderr.write(f"{visible(text)}\n")
        sys.stderr.flush()
    except OSError:
        pass


def _never_fail_on_characters(stream: TextIO) -> None:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
