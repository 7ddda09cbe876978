"""One turn of a conversation: messages -> prompt ids -> the engine's tokens -> typed events.

Shared by `dsv4chat ask` and the app. Knows no widget and no torch. A turn is used once:

    turn = Turn(engine, tokenizer, profile, conversation, conversation_id="7", sampling=params)
    async for event in turn.events():
        ...                              # TurnStarted, TurnPrefill*, TurnToken*, TurnFinished
    turn.message                         # what was said, also after a stop, an error or a dead engine

Errors of the engine (`EngineFailed`, `EngineDied`) come out of `events()`; before they do, the parser is
flushed, so `turn.message` holds the partial answer and `turn.rest` the events that were still held back.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from dsv4chat.encoding import CompletionParser, Conversation, Message, Profile, Tokenizer, render
from dsv4chat.encoding import Event as ParserEvent
from dsv4chat.runtime.protocol import Alternative, Finished, Prefill, SamplingParams, Token

Kind = Literal["reasoning", "answer", "tool"]


class TokenSource(Protocol):
    """What a turn needs of an engine; `EngineProcess` is one, a scripted fake in tests another."""

    def generate(
        self,
        ids: Sequence[int],
        sampling: SamplingParams,
        *,
        conversation: str = "default",
        boundaries: Sequence[int] = (),
        alternatives: int = 0,
    ) -> AsyncGenerator[Prefill | Token | Finished, None]:
        """Continue `ids`; the last item is always `Finished`. Closed early, it stops the turn."""
        ...

    def stop(self) -> None:
        """Ask the running turn to end after the current token; returns at once."""
        ...


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The prompt is rendered and sent. `prompt_tokens`: its length in ids."""

    prompt_tokens: int
    thinking: bool


@dataclass(frozen=True, slots=True)
class TurnPrefill:
    """`done` of `total` ids fed, after `reused` ids found in the cache."""

    done: int
    total: int
    reused: int


@dataclass(frozen=True, slots=True)
class TurnToken:
    """One sampled token with its figures, and what the parser made of it.

    text: the raw piece this token completes; "" for a control token (never shown) and inside a character.
    kind: what the token belongs to.
    events: parser events it caused, in order: ReasoningText, AnswerText, ToolCallStart, ToolCallArgument,
        ToolCallEnd. Show these; `text` may be held back for a few tokens while it could become a tag.
    milliseconds, logprob (natural), residual (|X|, one a layer), alternatives: the engine's figures.
    """

    index: int
    id: int
    text: str
    kind: Kind
    logprob: float
    milliseconds: float
    residual: tuple[float, ...]
    alternatives: tuple[Alternative, ...]
    events: tuple[ParserEvent, ...]


@dataclass(frozen=True, slots=True)
class TurnFigures:
    """What the turn cost. `ttft_ms` = `prefill_ms` + `first_decode_ms` (and the little between them).

    Both are None when the turn ended before its first token. room: ids that still fit into the context.
    notices: sentences about saved caches that could not be used.
    """

    prompt_tokens: int
    prefilled: int
    reused: int
    tokens: int
    ttft_ms: float | None
    prefill_ms: float
    first_decode_ms: float | None
    tokens_per_second: float
    room: int | None = None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The end of the turn.

    reason: "stop", "length" or "stopped", the engine's. finish_reason: the message's, "tool_calls" included.
    message: the assistant message, with the sampled ids to be rendered verbatim in the next prompt.
    offered_answer: the reasoning, when the model ended its turn without closing it: most likely the answer.
    events: what the parser had held back; the last one is `Stopped`.
    """

    reason: str
    finish_reason: str
    message: Message
    offered_answer: str | None
    figures: TurnFigures
    events: tuple[ParserEvent, ...]


TurnEvent = TurnStarted | TurnPrefill | TurnToken | TurnFinished


class Turn:
    """One generation for `conversation`. Rendering happens here: EncodingError if it is not well formed."""

    def __init__(
        self,
        engine: TokenSource,
        tokenizer: Tokenizer,
        profile: Profile,
        conversation: Conversation,
        *,
        conversation_id: str = "default",
        sampling: SamplingParams | None = None,
        alternatives: int = 0,
        task: str | None = None,
    ) -> None:
        encoded = tokenizer.encode(render(conversation, profile, task=task))
        self.prompt_ids: tuple[int, ...] = tuple(encoded.ids)
        self.boundaries: tuple[int, ...] = tuple(encoded.boundaries)
        self.thinking = _opens_in_reasoning(self.prompt_ids, tokenizer)
        self._opened_at = _after_opener(self.prompt_ids, tokenizer) if task is None else None
        self._engine = engine
        self._tokenizer = tokenizer
        self._conversation_id = conversation_id
        self._sampling = sampling or SamplingParams()
        self._alternatives = alternatives
        self._prefix = _prefix_of(conversation) if task is None else None
        self._parser = CompletionParser(
            conversation.thinking if self._prefix else self.thinking,
            tokenizer=tokenizer,
            # Without tools on offer a call is passed on as it is: there is nothing to check it against.
            tools=conversation.tools or None,
            prefix=self._prefix,
        )
        self._sampled: list[int] = []
        self.rest: tuple[ParserEvent, ...] = ()

    @property
    def sampled_ids(self) -> tuple[int, ...]:
        """The ids sampled so far, without the stop token."""
        return tuple(self._sampled)

    @property
    def kind(self) -> Kind:
        """What is being read now."""
        return self._parser.kind

    @property
    def offered_answer(self) -> str | None:
        """See `TurnFinished`; None before the end."""
        return self._parser.offered_answer

    @property
    def message(self) -> Message:
        """What has been said so far, as the message to keep: a continued prefix is part of it.

        Its ids are everything after the `<think>` or `</think>` that opened the turn. A task's answer (a
        title) is no turn of the conversation and carries none.
        """
        message = self._parser.message()
        if self._opened_at is None:
            return replace(message, ids=None)
        if self._prefix is not None:
            message = _joined(self._prefix, message)
        return replace(message, ids=self.prompt_ids[self._opened_at :] + tuple(self._sampled))

    def stop(self) -> None:
        """End the turn after the current token; `events()` then ends with `TurnFinished`."""
        self._engine.stop()

    async def events(self) -> AsyncGenerator[TurnEvent, None]:
        """Run the turn. Raises what the engine raises, after flushing the parser.

        Whoever may leave it early should close it (contextlib.aclosing): that stops the engine.
        """
        yield TurnStarted(len(self.prompt_ids), self.thinking)
        generation = self._engine.generate(
            self.prompt_ids,
            self._sampling,
            conversation=self._conversation_id,
            boundaries=self.boundaries,
            alternatives=self._alternatives,
        )
        try:
            async with aclosing(generation):
                async for item in generation:
                    if isinstance(item, Prefill):
                        yield TurnPrefill(item.done, item.total, item.reused)
                    elif isinstance(item, Token):
                        yield self._token(item)
                    else:
                        yield self._finished(item)
        finally:
            # After a proper end nothing is left and this does nothing.
            self.rest = tuple(self._parser.finish("stopped"))

    def _token(self, token: Token) -> TurnToken:
        before = self._parser.kind
        events = tuple(self._parser.push(token.text, token.id))
        # The token that closes a tool call leaves the parser outside it, and still belongs to the call.
        kind = "tool" if "tool" in (before, self._parser.kind) else before
        self._sampled.append(token.id)
        return TurnToken(
            index=len(self._sampled) - 1,
            id=token.id,
            text="" if token.id in self._tokenizer.control_ids else token.text,
            kind=kind,
            logprob=token.logprob,
            milliseconds=token.milliseconds,
            residual=tuple(token.residual),
            alternatives=tuple(token.alternatives),
            events=events,
        )

    def _finished(self, end: Finished) -> TurnFinished:
        events = tuple(self._parser.finish(end.reason, end.tail))
        figures = TurnFigures(
            prompt_tokens=len(self.prompt_ids),
            prefilled=end.prefilled,
            reused=end.reused,
            tokens=end.tokens,
            ttft_ms=end.ttft_ms,
            prefill_ms=end.prefill_ms,
            first_decode_ms=end.first_decode_ms,
            tokens_per_second=end.tokens_per_second,
            room=end.room,
            notices=tuple(end.notices),
        )
        return TurnFinished(
            reason=end.reason,
            finish_reason=self._parser.finish_reason or end.reason,
            message=self.message,
            offered_answer=self._parser.offered_answer,
            figures=figures,
            events=events,
        )


def _prefix_of(conversation: Conversation) -> Message | None:
    """The message to be continued, if the conversation ends with one."""
    last = conversation.messages[-1] if conversation.messages else None
    return last if last is not None and last.prefix else None


def _joined(prefix: Message, message: Message) -> Message:
    """The prefix and what continued it, as one finished message."""
    reasoning = None
    if prefix.reasoning is not None or message.reasoning is not None:
        reasoning = (prefix.reasoning or "") + (message.reasoning or "")
    return replace(
        message,
        content=prefix.content + message.content,
        reasoning=reasoning,
        tool_calls=prefix.tool_calls + message.tool_calls,
    )


def _opens_in_reasoning(ids: Sequence[int], tokenizer: Tokenizer) -> bool:
    """Whether what follows `ids` is reasoning: the last token of structure is an open `<think>`.

    Read off the ids because only there a prefix to be continued, a task and a plain turn look alike; text
    from a person can hold none of these ids.
    """
    closing = {tokenizer.think_end_id, tokenizer.assistant_id, tokenizer.user_id, tokenizer.eos_id}
    for token in reversed(ids):
        if token == tokenizer.think_start_id:
            return True
        if token in closing:
            return False
    return False


def _after_opener(ids: Sequence[int], tokenizer: Tokenizer) -> int | None:
    """Where the open turn's own ids begin: past `<｜Assistant｜>` and its `<think>` or `</think>`."""
    for position in range(len(ids) - 1, -1, -1):
        if ids[position] == tokenizer.assistant_id:
            return min(position + 2, len(ids))
    return None
