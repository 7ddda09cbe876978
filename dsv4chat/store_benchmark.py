"""How fast the history is when it has grown: `dsv4chat bench store`.

Builds a history of made-up conversations in a temporary folder (words as often as in English: a word's
frequency falls with its rank), one of them long, and times what a person waits for. Times are milliseconds.
"""

import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dsv4chat.store import (
    ConversationRecord,
    ConversationSettings,
    GenerationRecord,
    MessageRecord,
    Repository,
    TokenFigures,
    open_history,
)
from dsv4chat.store.opening import FILE_NAME

LAYERS = 43
_PAGE = 20  # messages the app shows first
_FREQUENT = """
    the of and to a in is that it for you was with on as are be this have from or by not but what all were
    when we there can an your which their if will each about how up out them then she many some so these
    would other into has more two like him see time could no make than first been its who now people my
    made over did down only way find use may water long little very after words called just where most
"""
_BEGINNINGS = (*"bcdfghlmnprstvw", "st", "tr", "pl", "ch", "th")
_ENDINGS = (*"aeiou", "ai", "ou", "an", "en", "er", "in", "on", "al")


@dataclass(frozen=True)
class Timing:
    """One thing done several times. max_cpu_ms: the most computing it took, whatever else the machine did."""

    what: str
    times: int
    median_ms: float
    max_ms: float
    max_cpu_ms: float
    slowest: str = ""


@dataclass(frozen=True)
class StoreBenchmark:
    """conversations, messages: how many there are. megabytes: size of the file."""

    conversations: int
    messages: int
    long: int
    megabytes: float
    build_seconds: float
    timings: tuple[Timing, ...]


def store_benchmark(
    conversations: int = 5_000,
    messages: int = 100_000,
    long: int = 2_000,
    progress: Callable[[str], None] = lambda stage: None,
) -> StoreBenchmark:
    """Build the history and measure it. long: messages of the longest conversation."""
    words = _Words(random.Random(4))
    with tempfile.TemporaryDirectory(prefix="dsv4chat-bench-") as name:
        folder = Path(name)
        progress(f"writing {messages} messages in {conversations} conversations")
        started = time.perf_counter()
        longest = build_history(folder, conversations, messages, long, words)
        built = time.perf_counter() - started
        progress("measuring")
        timings = _measure(folder, words, conversations, longest)
        size = (folder / FILE_NAME).stat().st_size / 1e6
    return StoreBenchmark(conversations, messages, long, size, built, tuple(timings))


class _Words:
    """Text whose words are as unevenly frequent as real ones."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        syllables = [start + end for start in _BEGINNINGS for end in _ENDINGS]
        made = ("".join(rng.choice(syllables) for _ in range(rng.randint(1, 4))) for _ in range(40_000))
        self.all = [*_FREQUENT.split(), *made]
        self._weights = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(len(self.all))))

    def text(self, shortest: int, longest: int) -> str:
        count = self.rng.randint(shortest, longest)
        return " ".join(self.rng.choices(self.all, cum_weights=self._weights, k=count))


def build_history(
    folder: Path, conversations: int, messages: int, long: int, words: "_Words | None" = None
) -> int:
    """Write the history that is measured; returns the number of its long conversation."""
    words = words or _Words(random.Random(4))
    history = open_history(folder).repository
    lengths = _lengths(words.rng, conversations - 1, messages - long)
    place = words.rng.randrange(conversations)
    lengths.insert(place, long)
    longest = 0
    for number, length in enumerate(lengths):
        measured = _tokens(words.rng, 2_000) if number == place else None
        added = _write_conversation(history, words, length, 1.7e9 + 3600 * number, measured)
        longest = added if number == place else longest
    history.close()
    return longest


def _lengths(rng: random.Random, count: int, total: int) -> list[int]:
    """`count` lengths of at least two messages, uneven as chats are, that add up to `total`."""
    shares = [rng.expovariate(1.0) for _ in range(count)]
    free = total - 2 * count
    ends = [round(free * part / sum(shares)) for part in itertools.accumulate(shares)]
    return [2 + end - start for start, end in itertools.pairwise([0, *ends])]


def _write_conversation(
    history: Repository, words: _Words, length: int, created: float, last: TokenFigures | None
) -> int:
    made: list[MessageRecord] = []
    for number in range(1, length + 1):
        asked = number % 2 == 1
        made.append(
            MessageRecord(
                id=number,
                conversation=0,
                parent=number - 1 or None,
                role="user" if asked else "assistant",
                content=words.text(3, 40) if asked else words.text(30, 200),
                reasoning=None if asked else words.text(0, 120),
                created=created + number,
                generation=None if asked else GenerationRecord("demo", "bench", "preview", LAYERS),
            )
        )
    figures = {} if last is None else {made[-1].id: last}
    title = " ".join(made[0].content.split()[:8])
    record = ConversationRecord(
        0, title, "text", created, created + length, made[-1].id, ConversationSettings()
    )
    return history.add_whole(record, made, figures)


def _tokens(rng: random.Random, count: int) -> TokenFigures:
    figures = TokenFigures()
    for number in range(count):
        residual = [rng.lognormvariate(layer / 8, 1.0) for layer in range(LAYERS)]
        figures.add(number, "answer", rng.uniform(5, 20), -rng.expovariate(2.0), residual)
    return figures


def _measure(folder: Path, words: _Words, conversations: int, longest: int) -> list[Timing]:
    opening = _timing("open the history", [("", lambda: open_history(folder).repository.close())] * 3)
    history = open_history(folder).repository

    def usable() -> None:
        history.summaries()
        leaf = history.conversation(longest).active_leaf
        page = history.path(leaf, last=_PAGE)
        history.branches([message.id for message in page])

    leaf = history.conversation(longest).active_leaf or 0
    once = [
        _timing("list the first 200 conversations", [("", history.summaries)] * 5),
        _timing(f"list all {conversations}", [("", lambda: history.summaries(conversations))] * 5),
        _timing(f"list, open the long one, last {_PAGE} messages", [("", usable)] * 5),
        _timing("the long conversation whole", [("", lambda: history.path(leaf))] * 5),
        _timing("its branches", [("", lambda: history.branches(history.path_ids(leaf)))] * 5),
        _timing("figures of 2,000 tokens", [("", lambda: history.figures(leaf))] * 5),
    ]
    searches = []
    for kind, asked in _queries(words).items():
        searches.append(_timing(kind, [(one, partial(history.search, one)) for one in asked]))
    history.close()
    return [opening, *once, *searches]


def _queries(words: _Words) -> dict[str, list[str]]:
    rng, rare = words.rng, words.all[5_000:]
    letters = "abcdefghilmnoprstuvwy"
    typed = [words.text(3, 5) for _ in range(6)]
    return {
        "search: a first letter": list(letters),
        "search: two letters": sorted({word[:2] for word in rng.sample(words.all, 150)}),
        "search: three letters": sorted({word[:3] for word in rng.sample(words.all, 150)}),
        "search: four and five letters": sorted(
            {word[:n] for word in rng.sample(words.all, 80) for n in (4, 5)}
        ),
        "search: frequent words": [f"{word} " for word in _FREQUENT.split()],
        "search: rare words": [f"{word} " for word in rng.sample(rare, 60)],
        "search: several words": [words.text(2, 4) for _ in range(80)],
        "search: a frequent and a rare word": [f"the {word} " for word in rng.sample(rare, 60)],
        "search: phrases": [f'"{words.text(2, 3)}"' for _ in range(60)],
        "search: letter by letter": [text[:end] for text in typed for end in range(1, len(text) + 1)],
        "search: nothing to find": [f"{word}qx " for word in rng.sample(rare, 20)],
    }


def _timing(what: str, work: Sequence[tuple[str, Callable[[], object]]]) -> Timing:
    taken = []
    for name, act in work:
        started, computed = time.perf_counter(), time.thread_time()
        act()
        spent = (time.thread_time() - computed) * 1000
        taken.append(((time.perf_counter() - started) * 1000, spent, name))
    longest, _, slowest = max(taken)
    median = statistics.median(wall for wall, _, _ in taken)
    return Timing(what, len(taken), median, longest, max(cpu for _, cpu, _ in taken), slowest)
