"""What a turn of a conversation costs when the cache is warm, and what it would cost without.

Two conversations in each of three modes: twenty questions of 50 tokens, and a document of 3,000 tokens with
ten questions. After each answer the same prompt is given to an empty cache, so that both meet the machine in
the same minute. In the end the conversation is saved, and engines made anew over the same weights answer one
more question from what is on disk.
"""

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from dsv4chat.encoding import CompletionParser, Conversation, Message, Profile, Tokenizer, render
from dsv4chat.runtime.engine import Engine
from dsv4chat.runtime.generation import TurnReport
from dsv4chat.runtime.protocol import SamplingParams

MODES = ("chat", "thinking", "thinking with tools")
TURNS, MESSAGE_TOKENS = 20, 50
QUESTIONS, DOCUMENT_TOKENS, QUESTION_TOKENS = 10, 3000, 15
ANSWER_TOKENS = 24
RESTARTS = 3
CONTEXT = 8192
TOOL = {
    "name": "calculator",
    "description": "Works out an expression.",
    "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}},
}
WORDS = (
    *("the", "old", "river", "runs", "past", "a", "small", "town", "where", "people", "sell", "bread", "and"),
    *("fish", "every", "morning", "before", "ships", "leave", "for", "islands", "with", "letters", "tools"),
    *(
        "books",
        "while",
        "children",
        "wait",
        "near",
        "stone",
        "bridges",
        "under",
        "tall",
        "trees",
        "to",
        "hear",
    ),
    *("what", "sailors", "say", "when", "they", "come", "home", "again", "at", "night"),
)


@dataclass(frozen=True)
class Turn:
    """prompt: ids; prefilled: of them fed with a warm cache, after `reused`. Times to the first token, ms."""

    prompt: int
    reused: int
    prefilled: int
    warm_ms: float
    cold_ms: float


@dataclass(frozen=True)
class Restart:
    """One more turn after the engine was made anew over the same weights, in ready_ms."""

    ready_ms: float
    turn: Turn
    restored: str


@dataclass(frozen=True)
class ConversationCost:
    """Medians over the turns, without the first one, which is cold itself. saved_bytes: on disk in the end.

    ratio: of each turn's cold and warm time. restart_ms: the engine's making and the time to the first token.
    """

    name: str
    mode: str
    turns: list[Turn]
    prefilled: float
    warm_ms: float
    cold_ms: float
    ratio: float
    restarts: list[Restart]
    restart_ms: float
    restart_ratio: float
    saved_bytes: int


@dataclass(frozen=True)
class TurnsBenchmark:
    """One entry a conversation and mode."""

    model: str
    device: str
    kv_dtype: str
    conversations: list[ConversationCost]


def turns_benchmark(
    model: str = "demo",
    *,
    modes: tuple[str, ...] = MODES,
    turns: int = TURNS,
    questions: int = QUESTIONS,
    document: int = DOCUMENT_TOKENS,
    device: str = "auto",
    progress: Callable[[str], None] | None = None,
) -> TurnsBenchmark:
    """Run both conversations in every mode. Raises EngineError for a model that cannot be used."""
    say = progress or (lambda stage: None)
    say("loading the model")
    engine = Engine.load(model, device=device, max_context=CONTEXT)
    costs = []
    for mode in modes:
        say(f"{turns} questions of {MESSAGE_TOKENS} tokens, {mode}")
        short = [_text(engine, MESSAGE_TOKENS, seed) for seed in range(turns + 1)]
        costs.append(_measure(engine, f"{turns} questions", mode, short))
        say(f"a document of {document:,} tokens with {questions} questions, {mode}")
        first, *more = (_text(engine, QUESTION_TOKENS, 100 + seed) for seed in range(questions + 1))
        first = _text(engine, document, 99) + "\n\n" + first
        costs.append(_measure(engine, f"{document:,} tokens, {questions} questions", mode, [first, *more]))
    return TurnsBenchmark(model, engine.info.device, engine.info.kv_dtype, costs)


def _measure(loaded: Engine, name: str, mode: str, questions: list[str]) -> ConversationCost:
    """All questions but the last one to one engine, the last one to another after a save."""
    conversation = Conversation((), tools=(TOOL,) if "tools" in mode else (), thinking=mode != "chat")
    with tempfile.TemporaryDirectory() as folder:
        engine, _ = _fresh(loaded, Path(folder))
        cold = Engine(loaded.model, loaded.info, loaded.tokenizer)  # its own live cache: no switching
        _ask(engine, replace(conversation, messages=(Message("user", "Hello"),)), "warm-up")
        turns = []
        for question in questions[:-1]:
            conversation = _with(conversation, Message("user", question))
            report, answer = _ask(engine, conversation, "warm")
            turns.append(_turn(report, _cold_ms(cold, conversation)))
            conversation = _with(conversation, answer)
        saved = engine.save("warm")
        conversation = _with(conversation, Message("user", questions[-1]))
        restarts = []
        for _ in range(RESTARTS):
            engine, ready_ms = _fresh(loaded, Path(folder))
            report, _ = _ask(engine, conversation, "warm")
            restarts.append(Restart(ready_ms, _turn(report, _cold_ms(cold, conversation)), report.restored))
    warm_ms = statistics.median(turn.warm_ms for turn in turns[1:])
    cold_ms = statistics.median(turn.cold_ms for turn in turns[1:])
    return ConversationCost(
        name=name,
        mode=mode,
        turns=turns,
        prefilled=statistics.median(turn.prefilled for turn in turns[1:]),
        warm_ms=warm_ms,
        cold_ms=cold_ms,
        ratio=statistics.median(turn.cold_ms / turn.warm_ms for turn in turns[1:]),
        restarts=restarts,
        restart_ms=statistics.median(one.ready_ms + one.turn.warm_ms for one in restarts),
        restart_ratio=statistics.median(
            one.turn.cold_ms / (one.ready_ms + one.turn.warm_ms) for one in restarts
        ),
        saved_bytes=saved.bytes,
    )


def _fresh(loaded: Engine, folder: Path) -> tuple[Engine, float]:
    """An engine that knows nothing but the weights and what is in `folder`, and the milliseconds it took."""
    started = time.perf_counter()
    engine = Engine(loaded.model, loaded.info, loaded.tokenizer, cache_folder=folder)
    return engine, 1000 * (time.perf_counter() - started)


def _ask(engine: Engine, conversation: Conversation, name: str) -> tuple[TurnReport, Message]:
    """One turn: what it cost, and the answer as the message to keep."""
    tokenizer = engine.require_tokenizer()
    prompt = tokenizer.encode(render(conversation, Profile.PREVIEW))
    parser = CompletionParser(conversation.thinking, tokenizer=tokenizer)
    params = SamplingParams(temperature=0, max_tokens=ANSWER_TOKENS)
    ids = []
    for token in engine.generate(prompt.ids, params, conversation=name, boundaries=prompt.boundaries):
        ids.append(token.id)
        parser.push(token.text, token.id)
    report = engine.last_turn
    parser.finish(report.reason, report.tail)
    return report, replace(parser.message(), tool_calls=(), ids=tuple(ids))


def _cold_ms(engine: Engine, conversation: Conversation) -> float:
    """The time to the first token of the same prompt with an empty cache."""
    prompt = engine.require_tokenizer().encode(render(conversation, Profile.PREVIEW))
    params = SamplingParams(temperature=0, max_tokens=1)
    list(engine.generate(prompt.ids, params, conversation="cold", boundaries=prompt.boundaries))
    engine.drop("cold")
    return engine.last_turn.ttft_ms or 0.0


def _turn(report: TurnReport, cold_ms: float) -> Turn:
    return Turn(report.prompt_tokens, report.reused, report.prefilled, report.ttft_ms or 0.0, cold_ms)


def _with(conversation: Conversation, message: Message) -> Conversation:
    return replace(conversation, messages=(*conversation.messages, message))


def _text(engine: Engine, tokens: int, seed: int) -> str:
    """Words that make at most `tokens` tokens, and no fewer than a word less."""
    tokenizer: Tokenizer = engine.require_tokenizer()
    rng = random.Random(seed)
    words = [rng.choice(WORDS) for _ in range(tokens + 1)]
    low, high = 1, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        if len(tokenizer.encode_text(" ".join(words[:middle]))) <= tokens:
            low = middle
        else:
            high = middle - 1
    return " ".join(words[:low])
