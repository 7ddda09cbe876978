"""Chats on one engine whose every logit is compared with a fresh cache, and whose prefills are counted.

What a turn may feed is computed here from what was rendered and sampled, never asked of the engine.
"""

import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from dsv4chat.encoding import CompletionParser, Conversation, Message, Profile, render
from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.engine import Engine
from dsv4chat.runtime.model import Output
from dsv4chat.runtime.protocol import SamplingParams
from tests.support.random_chats import random_text

STEP = 256  # how far apart places to go back to may be inside a message
TOOLS = ({"name": "look_up", "description": "Looks it up.", "parameters": {"type": "object"}},)


class Recording:
    """A model that remembers what each forward pass gave: (ids, output)."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.outputs: list[tuple[int, Output]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def forward(self, ids: torch.Tensor, cache: KVCache, logits: str = "last", trace: Any = None) -> Output:
        output = self._model.forward(ids, cache, logits, trace)
        self.outputs.append((ids.shape[0], output))
        return output


@dataclass
class Line:
    """Ids that were fed one after the other. places: where messages start and answers open.

    left: another version was turned to when this one had come to its end, so its end is a place as well.
    """

    ids: list[int]
    places: list[int]
    left: bool = False


@dataclass
class Chat:
    """One conversation. known: every line its cache must know, the present one last; saved: those on disk."""

    name: str
    messages: list[Message] = field(default_factory=list)
    thinking: bool = False
    tools: bool = False
    effort: str | None = None
    known: list[Line] = field(default_factory=list)
    saved: list[Line] = field(default_factory=list)
    fresh: bool = False  # nothing but a finished turn with the present settings has happened since

    def leave(self) -> None:
        """Something else comes next: the present end is kept."""
        if self.known:
            self.known[-1].left = True

    def conversation(self) -> Conversation:
        """As the renderer takes it."""
        return Conversation(
            tuple(self.messages),
            tools=TOOLS if self.tools else (),
            thinking=self.thinking,
            effort=self.effort,
        )


class WarmChats:
    """Chats that share an engine with a cache folder. limited: memory so small that everything is on disk."""

    def __init__(self, loaded: Engine, folder: Path, seed: int, *, limited: bool = False) -> None:
        self._loaded = loaded
        self._folder = folder
        self._memory = 60_000 if limited else None
        self.limited = limited
        self.rng = random.Random(seed)
        self.chats = [Chat("a")]
        self.chat = self.live = self.chats[0]
        self._start()

    def _start(self) -> None:
        self.recording = Recording(self._loaded.model)
        loaded = self._loaded
        self.engine = Engine(
            self.recording,
            loaded.info,
            loaded.tokenizer,
            cache_memory=self._memory,
            cache_folder=self._folder,
        )

    # ---- what a person does --------------------------------------------------------------------------

    def say(self, length: int, *, stop_after: int | None, most: int) -> None:
        """A new message of about `length` characters, and its answer."""
        self.chat.messages.append(Message("user", self._text(length)))
        self._turn(stop_after=stop_after, most=most, appended=True)

    def again(self, *, stop_after: int | None, most: int) -> None:
        """Another answer to the last question."""
        if not self.chat.messages:
            return
        if self.chat.messages[-1].role == "assistant":
            self.chat.messages.pop()
        self._turn(stop_after=stop_after, most=most)

    def go_on(self, *, most: int) -> None:
        """Continue the last answer, which was stopped or not."""
        messages = self.chat.messages
        if messages and messages[-1].role == "assistant" and messages[-1].content:
            messages[-1] = replace(messages[-1], prefix=True)
            self._turn(stop_after=None, most=most)

    def edit(self, number: int, length: int, *, most: int) -> None:
        """Change a message and drop what follows it; a branch, as the old version may be wanted again."""
        messages = self.chat.messages
        if not messages:
            return
        number %= len(messages)
        old = messages[number]
        content = self._text(length) if self.rng.random() < 0.5 else old.content + self._text(5)
        del messages[number:]
        messages.append(replace(old, content=content, ids=None, reasoning=None))
        if old.role == "assistant":
            messages.append(Message("user", self._text(9)))
        self._turn(stop_after=None, most=most)

    def switch(self, number: int) -> None:
        """To another chat, which may be a new one or a branch: a chat's messages up to some point."""
        number %= len(self.chats) + 1
        if number == len(self.chats) and len(self.chats) < 3:
            self.chats.append(Chat("abc"[number]))
        self.chat = self.chats[min(number, len(self.chats) - 1)]
        self.chat.fresh = False

    def configure(self, *, thinking: bool, tools: bool, effort: str | None) -> None:
        """Change the mode of the present chat."""
        chat = self.chat
        chat.thinking, chat.tools, chat.effort, chat.fresh = thinking, tools, effort, False

    def recall(self, number: int) -> None:
        """Go back to any version there ever was, and on from its end."""
        if self.chat.known:
            line = self.chat.known[number % len(self.chat.known)].ids
            more = [self.rng.randrange(3, 200) for _ in range(self.rng.choice([1, 2, 9]))]
            self._feed([*line, *more], [], most=1, stop_after=None)
            self.chat.fresh = False

    # ---- what happens to the engine ------------------------------------------------------------------

    def save(self) -> None:
        """Write the present chat to disk."""
        self.engine.save(self.chat.name)
        self.chat.leave()
        self.chat.saved = list(self.chat.known)
        self.probe()

    def evict(self) -> None:
        """The present chat has to leave memory."""
        self.engine.conversations.release(self.chat.name)
        self.chat.leave()
        self.chat.saved = list(self.chat.known)
        self.probe()

    def kill(self, *, resume: bool) -> None:
        """The engine is gone, without a word; another one starts."""
        for chat in self.chats:
            chat.known, chat.fresh = list(chat.saved), False
        self._start()
        if resume and self.engine.resume(self.chat.name).notices:
            self.chat.known = []
        self.probe()

    def damage(self) -> None:
        """A byte of a saved file changes, or its end is lost; then the engine starts again.

        The file may be needed, and found to be damaged, much later: the turn that tells of it may feed more.
        """
        files = sorted(self._folder.rglob("*.safetensors"))
        if files:
            path = self.rng.choice(files)
            content = bytearray(path.read_bytes())
            if self.rng.random() < 0.3:
                del content[self.rng.randrange(len(content)) :]
            else:
                content[self.rng.randrange(len(content))] ^= 1 << self.rng.randrange(8)
            path.write_bytes(content)
        for chat in self.chats:
            chat.saved = []
        self.kill(resume=self.rng.random() < 0.5)

    def probe(self) -> None:
        """One token more for the last question, which is not kept: shows that the present state is right."""
        if self.chat.messages:
            fresh = self.chat.fresh
            ids, boundaries = self._render()
            self._feed(ids, boundaries, most=1, stop_after=None)
            self.chat.fresh = fresh

    # ---- a turn, and what is checked -----------------------------------------------------------------

    def _turn(self, *, stop_after: int | None, most: int, appended: bool = False) -> None:
        chat = self.chat
        ids, boundaries = self._render()
        before = chat.messages[-2] if appended and chat.fresh and len(chat.messages) > 1 else None
        prefix = chat.messages[-1] if chat.messages[-1].prefix else None
        tokens = self._feed(ids, boundaries, most=most, stop_after=stop_after)
        turn = self.engine.last_turn
        if before is not None and self.bounded:
            assert turn.prefilled <= self._appending(before)
        parser = CompletionParser(
            chat.thinking,
            tokenizer=self._loaded.require_tokenizer(),
            tools=TOOLS if chat.tools else None,
            prefix=prefix,
        )
        for token in tokens:
            parser.push(token.text, token.id)
        parser.finish(turn.reason, turn.tail)
        chat.fresh = False
        if prefix is not None:
            chat.messages.pop()
            said = parser.message()
            content = prefix.content + said.content
            spoken = (*(prefix.ids or ()), *(token.id for token in tokens))
            message = replace(prefix, content=content, prefix=False, ids=spoken if prefix.ids else None)
            chat.messages.append(message)
        elif tokens:
            spoken = tuple(token.id for token in tokens)
            chat.messages.append(replace(parser.message(), tool_calls=(), ids=spoken))
            chat.fresh = True

    def _appending(self, before: Message) -> int:
        """What a turn may feed that only adds a question to a finished one, from the messages alone."""
        chat, tokenizer = self.chat, self._loaded.require_tokenizer()
        alone = Conversation((chat.messages[-1],), thinking=chat.thinking)
        new = len(tokenizer.encode(render(alone, Profile.PREVIEW)).ids) - 1  # without the start token
        spoken = list(before.ids or ())
        closed = tokenizer.think_end_id in spoken
        if not chat.thinking:
            return new + 1
        if chat.tools:  # the reasoning stays; one that was cut off is closed
            return new + 1 + (not closed)
        answer = len(spoken) - spoken.index(tokenizer.think_end_id) - 1 if closed else 0
        return 1 + answer + 1 + new

    def _feed(self, ids: list[int], boundaries: list[int], *, most: int, stop_after: int | None) -> list[Any]:
        """One turn of the engine, all of its logits compared, all of its prefill accounted for."""
        if self.live is not self.chat:
            self.live.leave()
            self.live = self.chat
        self.recording.outputs.clear()
        asked = iter(range(10_000))
        params = SamplingParams(seed=self.rng.randrange(2**32), max_tokens=most)
        tokens = list(
            self.engine.generate(
                ids,
                params,
                conversation=self.chat.name,
                boundaries=boundaries,
                should_stop=lambda: stop_after is not None and next(asked) >= stop_after,
            )
        )
        turn = self.engine.last_turn
        line = [*ids[: turn.reused + turn.prefilled], *(token.id for token in tokens)]
        self._compare(line)
        if self.bounded:
            assert turn.prefilled <= self.bound(ids, boundaries)
        if turn.notices:  # what the file held is fed again; nothing older is sure to be there
            self.chat.known = []
        if self.chat.known and line[: len(self.chat.known[-1].ids)] != self.chat.known[-1].ids:
            self.chat.leave()
        self.chat.known.append(Line(line, [place for place in boundaries if place <= len(line)]))
        return tokens

    @property
    def bounded(self) -> bool:
        """Whether the last turn may feed only what is new: nothing given to memory or files was lost."""
        return not self.limited and not self.engine.last_turn.notices

    def bound(self, ids: list[int], boundaries: list[int]) -> int:
        """What a turn may feed, given all that the cache must know and where messages start.

        From the start of the message in which it parts from a known line; or, where that is less, from at
        most a step before that place; and from the very end of a line that it continues.
        """
        best = 0
        for line in self.chat.known:
            shared = min(_common(ids, line.ids), len(ids) - 1)  # the last one is always fed
            best = max(best, shared - STEP)
            best = max([best, *(place for place in line.places if place in boundaries and place <= shared)])
            if shared == len(line.ids) and (line.left or line is self.chat.known[-1]):
                best = max(best, shared)
        return len(ids) - best

    def _compare(self, line: list[int]) -> None:
        """Every output of the turn equals, bit for bit, that of a fresh cache fed the same chunks."""
        session = self.engine.session(self.chat.name)
        assert session.ids == line
        chunks = session.chunks
        outputs = self.recording.outputs
        assert [size for size, _ in outputs] == chunks[len(chunks) - len(outputs) :]
        info = self._loaded.info
        cache = KVCache(self._loaded.config, info.kv_dtype, info.max_context, self._loaded.model.device)
        position = 0
        for number, size in enumerate(chunks, len(outputs) - len(chunks)):
            piece = torch.tensor(line[position : position + size])
            expected = self._loaded.model.forward(piece, cache, "last")
            position += size
            if number >= 0:
                assert torch.equal(outputs[number][1].logits, expected.logits)
                assert torch.equal(outputs[number][1].residual, expected.residual)
        assert position == len(line)

    def _render(self) -> tuple[list[int], list[int]]:
        encoded = self._loaded.require_tokenizer().encode(render(self.chat.conversation(), Profile.PREVIEW))
        return encoded.ids, encoded.boundaries

    def _text(self, length: int) -> str:
        text = "x"
        while len(text) < length:
            text += random_text(self.rng)
        return text[:length]


def _common(first: list[int], second: list[int]) -> int:
    for index, (a, b) in enumerate(zip(first, second, strict=False)):
        if a != b:
            return index
    return min(len(first), len(second))
