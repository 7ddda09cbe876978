"""Completions back to messages, while they stream: reasoning, answer and tool calls, as events.

The same events come out (up to where texts are cut) for every way to cut the completion into pieces: only
what could still become a tag is held back, and `finish` gives it out. Line breaks at the borders are no part
of the message: those before and after `</think>`, at the very beginning, and around a block of tool calls.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from dsv4chat.encoding.call_errors import NOT_CLOSED, cut_off
from dsv4chat.encoding.calls import CallReader
from dsv4chat.encoding.continuation import left_thinking
from dsv4chat.encoding.conversation import Message, ToolCall
from dsv4chat.encoding.events import AnswerText, Event, ReasoningText, Stopped, joined
from dsv4chat.encoding.lexer import MARK_DSML, MARK_THINK_END, Lexer, visible
from dsv4chat.encoding.tags import MARKUP, Tag, is_half_markup, name_attribute, next_tag
from dsv4chat.encoding.tokenizer import Tokenizer

_LINE_BREAKS = re.compile("\n+")
_SPACES = re.compile("[ \t\r\n]+")
_PROSE = re.compile("[^\n<\ud800-\udfff]+")


class CompletionParser:
    """Feed it with `push`, end it with `finish`, and read `message()` at any time.

    thinking   the turn was opened with <think>
    tokenizer  tells control ids apart; without it pieces count as text alone
    tools      the tools on offer; None: any name and parameter is accepted
    prefix     the message being continued: what is read continues its answer or, without one, its reasoning
    """

    def __init__(
        self,
        thinking: bool,
        *,
        tokenizer: Tokenizer | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        prefix: Message | None = None,
    ) -> None:
        self._lexer = Lexer(tokenizer)
        self._tools = tools
        self._thinking = thinking
        self._in_reasoning = thinking and not (prefix and left_thinking(prefix, tokenizer))
        # Nothing has been said yet in what is being read: line breaks before the first text do not count.
        self._fresh = not (prefix and (prefix.reasoning if self._in_reasoning else prefix.content))
        self._buffer = ""  # marked text not decided yet: at most the beginning of a tag
        self._breaks: list[str] = []  # white space a tag would swallow and text brings back
        self._wrapper: list[str] = []  # a block's opening tag, held until a call follows it
        self._in_block = False  # among the tags of a block, with no text since the last one
        self._after_tag = False  # in or right behind a block: all white space is held, not just line breaks
        self._call: CallReader | None = None
        self._in_value = False
        self._reasoning: list[str] = []
        self._answer: list[str] = []
        self._calls: list[ToolCall] = []
        self._ids: list[int] | None = []
        self._reason: str | None = None
        self._events: list[Event] = []

    def push(self, text: str = "", id: int | None = None) -> list[Event]:
        """Read a token (its id and the text it completed), or a piece of text alone."""
        if self._reason is not None:
            return []
        self._read(self._lexer.push(text, id), final=False)
        if id is None:
            self._ids = None if text else self._ids
        elif self._ids is not None and not self._lexer.ended:
            self._ids.append(id)
        return self._take()

    def finish(self, reason: str = "stop", tail: str = "") -> list[Event]:
        """The completion is over. `tail` is text that was still unfinished (StreamDecoder.flush)."""
        if self._reason is not None:
            return []
        if tail:
            self._read(self._lexer.tail(tail), final=False)
        self._read(self._lexer.flush(), final=True)
        if self._wrapper:
            self._begin_call("")
        if self._call is not None:
            self._end_call(cut_off(reason))
        elif not self._after_tag:
            self._say("", breaks=True)
        self._reason = reason
        self._events.append(Stopped(reason))
        return self._take()

    @property
    def kind(self) -> Literal["reasoning", "answer", "tool"]:
        """What is being read now."""
        if self._call or self._wrapper or self._in_block or MARKUP.match(self._buffer):
            return "tool"
        return "reasoning" if self._in_reasoning else "answer"

    @property
    def finish_reason(self) -> str | None:
        """None before `finish`; then "stop", "tool_calls", "length" or "stopped"."""
        return "tool_calls" if self._calls and self._reason == "stop" else self._reason

    def message(self) -> Message:
        """What was said so far. `ids` are there if every piece came with its id.

        A completion that never left its thinking is all reasoning here; see `offered_answer`.
        """
        return Message(
            "assistant",
            "".join(self._answer),
            reasoning="".join(self._reasoning) if self._thinking else None,
            tool_calls=tuple(self._calls),
            ids=tuple(self._ids) if self._ids else None,
        )

    @property
    def offered_answer(self) -> str | None:
        """The reasoning, when the model ended its turn without ever closing it and said nothing else.

        It is most likely the answer: show it as such, rather than an empty one.
        """
        if self._reason != "stop" or not self._in_reasoning or self._calls:
            return None
        return "".join(self._reasoning) or None

    def _take(self) -> list[Event]:
        events, self._events = self._events, []
        return joined(events)

    def _read(self, marked: str, final: bool) -> None:
        text, at = self._buffer + marked, 0
        while at < len(text):
            if self._call is None:
                end = self._read_prose(text, at, final)
            elif self._in_value:
                end = self._read_value(self._call, text, at, final)
            else:
                end = self._read_call(self._call, text, at, final)
            if end == at:
                break
            at = end
        self._buffer = text[at:]

    # Each of the three reads one thing at `at` and returns where it ends; `at` itself asks for more text.

    def _read_prose(self, text: str, at: int, final: bool) -> int:
        spaces = _SPACES if self._after_tag or self._wrapper else _LINE_BREAKS
        held = spaces.match(text, at)
        if held:
            if self._wrapper:
                self._wrapper.append(held.group())
            elif not self._fresh:
                self._breaks.append(held.group())
            return held.end()
        if text[at] == "<":
            tag = next_tag(text, at)
            if isinstance(tag, Tag):
                if self._prose_tag(tag, text):
                    return tag.end
            elif not final:
                if tag == "partial":
                    return at
            elif self._broken_off(text[at:]):
                return len(text)
        self._unwrap()
        if text[at] == MARK_THINK_END:
            if self._in_reasoning:
                self._breaks.clear()
                self._in_reasoning, self._fresh = False, True
            elif not self._after_tag:
                self._say("", breaks=True)
            return at + 1
        found = _PROSE.match(text, at)
        end = found.end() if found else at + 1
        self._say(text[at:end])
        return end

    def _prose_tag(self, tag: Tag, text: str) -> bool:
        """Act on a tag outside of a call; False if it is no markup here."""
        if tag.is_call and not tag.closing:
            self._begin_call(tag.name)
        elif tag.is_wrapper and not tag.closing:
            if not self._in_block:
                self._wrapper.append(text[tag.start : tag.end])
        elif tag.is_wrapper and (self._wrapper or self._calls):
            self._enter_block()
            self._in_block = False
        else:
            # Left over from a damaged block, which may be dropped; elsewhere only text that looks like a tag.
            return tag.closing and (bool(self._calls) or tag.certain)
        return True

    def _broken_off(self, rest: str) -> bool:
        """Whether `rest`, the end of the completion, is part of a tag among calls and nothing to show."""
        among_calls = bool(self._wrapper) or self._in_block
        if MARKUP.match(rest) and next_tag(rest, 0) == "partial":
            if not among_calls and MARK_DSML not in rest[:3]:
                return False
            if rest[1] != "/":
                self._begin_call(name_attribute(rest))
            return True
        return among_calls and is_half_markup(rest)

    def _read_call(self, call: CallReader, text: str, at: int, final: bool) -> int:
        if text[at] != "<":
            end = text.find("<", at)
            end = len(text) if end < 0 else end
            call.stray(visible(text[at:end]))
            return end
        tag = next_tag(text, at)
        if not isinstance(tag, Tag):
            if tag == "partial" and not final:
                return at
            if final and (tag == "partial" or is_half_markup(text[at:])):
                return len(text)
            tag = None
        if tag is None or (tag.is_wrapper and not tag.closing):
            call.stray("<")
            return at + 1
        if tag.is_parameter and tag.closing:
            call.broken("A parameter is closed that was not opened.")
        elif tag.is_parameter:
            self._events += call.parameter(tag.name, tag.string)
            self._in_value = True
        elif tag.is_call and tag.closing:
            self._end_call(None)
        else:
            self._end_call(NOT_CLOSED)
            self._prose_tag(tag, text)
        return tag.end

    def _read_value(self, call: CallReader, text: str, at: int, final: bool) -> int:
        if text[at] != "<":
            end = text.find("<", at)
            end = len(text) if end < 0 else end
            self._events += call.value(self._lexer.spelled(text[at:end]))
            return end
        tag = next_tag(text, at) if text[at + 1 : at + 2] in ("", "/") else None
        if tag == "partial":
            if not final:
                return at
            if MARK_DSML in text[at:]:
                return len(text)
            tag = None
        if tag is None:
            self._events += call.value("<")
            return at + 1
        self._events += call.end_parameter()
        self._in_value = False
        if tag.is_parameter:
            return tag.end
        call.broken(NOT_CLOSED)
        return self._read_call(call, text, at, final)

    def _begin_call(self, name: str | None) -> None:
        self._enter_block()
        self._call = CallReader(len(self._calls), name or "", self._tools)
        if not name:
            self._call.broken("The call names no tool.")
        self._events += self._call.start()

    def _end_call(self, error: str | None) -> None:
        if self._call is not None:
            events, call = self._call.end(error)
            self._events += events
            self._calls.append(call)
        self._call = None
        self._in_value = False
        self._after_tag = True

    def _enter_block(self) -> None:
        self._breaks.clear()
        self._wrapper.clear()
        self._in_reasoning = self._fresh = False
        self._in_block = self._after_tag = True

    def _unwrap(self) -> None:
        """No call followed the opening tag of a block: it was text."""
        if self._wrapper:
            text = "".join(self._wrapper)
            self._wrapper.clear()
            self._say(text)

    def _say(self, marked: str, *, breaks: bool = False) -> None:
        """Text of the reasoning or the answer, and before it the white space held (`breaks`: even alone)."""
        text = visible(marked)
        if not text and not breaks:
            return
        if self._after_tag and not self._answer:
            self._breaks.clear()
        said = self._reasoning if self._in_reasoning else self._answer
        event = ReasoningText if self._in_reasoning else AnswerText
        for piece in (*self._breaks, text):
            if piece:
                said.append(piece)
                self._events.append(event(piece))
        self._breaks.clear()
        self._fresh = self._after_tag = self._in_block = False
