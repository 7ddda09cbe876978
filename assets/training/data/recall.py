"""What the user told in this chat: said once, asked much later, with other talk in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .chat import Exchange, Rng, capital, casual
from .facts import Facts
from .phrasing import aside
from .recall_kinds import KINDS, Kind, draw_words
from .recall_questions import draw_question, fill

_THOUGHTS = (
    "The user told me: {s} So the answer is {v}.", "I look back in the chat. {s}", "Earlier the user said: {s} I repeat it.",
    "I remember this from the chat: {v}.", "It was said before: {v}.", "In this chat I was told {v}.",
)  # fmt: skip
_MISSING_THOUGHTS = (
    "I look back in the chat. It was not said.",
    "The user has not told me that. I must not invent it.",
    "Nothing in this chat says so.",
    "I do not find it in the chat.",
)
_ACK_THOUGHTS = (
    "The user tells me something about themselves. I note it.",
    "I should remember this.",
    "No question. I greet and keep it in mind.",
    "A personal fact: {v}.",
)


@dataclass(frozen=True)
class Told:
    """A personal fact with its value: how it was said, and how to ask for it."""

    kind: Kind
    words: dict[str, str]
    statement: str


def draw_told(facts: Facts, rng: Rng, taken: set[str]) -> Told:
    """A new fact of a kind not in `taken`, which grows."""
    free = [kind for kind in KINDS if kind.key not in taken]
    kind = rng.choices(free, [k.weight for k in free])[0]
    taken.add(kind.key)
    words = draw_words(kind, facts, rng)
    statement = rng.choice(kind.says.split("|")).format(**words)
    return Told(kind, words, aside(statement, rng))


def tell(told: Told, rng: Rng) -> Exchange:
    """The user says it and the model takes note."""
    thought = rng.choice(_ACK_THOUGHTS).format(v=told.words["v"])
    return Exchange(
        told.statement, fill(rng, told.kind.acks, told.words), thought, "", "Getting to know each other"
    )


def ask(told: Told, rng: Rng) -> Exchange:
    """The question for it, and the right answer."""
    statement = told.statement if told.statement[-1:] in ".!?" else told.statement + "."
    thought = rng.choice(_THOUGHTS).format(s=statement, v=told.words["v"])
    answer = fill(rng, told.kind.answers, told.words)
    return Exchange(
        casual(draw_question(told.kind, told.words, rng), rng),
        answer,
        thought,
        told.words["v"],
        "What I told you",
    )


def ask_missing(facts: Facts, rng: Rng, taken: set[str]) -> Exchange:
    """A question for something that was never said."""
    free = [kind for kind in KINDS if kind.key not in taken]
    kind = rng.choices(free, [k.weight for k in free])[0]
    words = draw_words(kind, facts, rng)
    user = casual(draw_question(kind, words, rng), rng)
    return Exchange(
        user, fill(rng, kind.missing, words), rng.choice(_MISSING_THOUGHTS), "", "What I told you"
    )


def _pasted(facts: Facts, rng: Rng, told: list[Told], characters: int) -> Exchange:
    """One long message that holds the facts somewhere between other sentences."""
    lines = []
    while sum(map(len, lines)) < characters:
        lines.append(capital(rng.choice(facts.sentences)) + ".")
    for fact in told:
        lines.insert(
            rng.randrange(len(lines) + 1),
            fact.statement if fact.statement[-1] in ".!?" else fact.statement + ".",
        )
    user = " ".join(lines)
    answer = rng.choice(
        (
            "I have read it.",
            "Thank you, I have read all of it.",
            "Okay. What would you like to know about it?",
        )
    )
    return Exchange(user, answer, "A long text. I read it and keep the facts in mind.", "", "A long text")


def recall(facts: Facts, rng: Rng, filler: Callable[[], list[Exchange]]) -> list[Exchange]:
    """Facts, other talk up to a random distance (at most about 1,700 tokens), questions."""
    taken: set[str] = set()
    told = [draw_told(facts, rng, taken) for _ in range(rng.choice((1, 1, 2, 2, 3, 4)))]
    distance = rng.randint(900, 3600) if rng.random() < 0.5 else int(60 * (5600 / 60) ** rng.random())
    exchanges: list[Exchange] = []
    if rng.random() < 0.15:
        exchanges.append(_pasted(facts, rng, told, min(distance, 2500)))
    elif rng.random() < 0.25 and len(told) > 1:
        statement = " ".join(t.statement if t.statement[-1] in ".!?" else t.statement + "." for t in told)
        exchanges.append(
            Exchange(
                statement,
                fill(rng, told[0].kind.acks, told[0].words),
                "Several facts about the user. I keep them in mind.",
                "",
                "Getting to know each other",
            )
        )
    else:
        for fact in told:
            first = tell(fact, rng)
            if rng.random() < 0.15:
                other = filler()[0]
                if not other.steps:
                    joined = f"{fact.statement} {other.user}"
                    first = Exchange(joined, other.answer, other.thought, "", other.title, aloud=other.aloud)
            exchanges.append(first)
            if rng.random() < 0.3:
                exchanges += filler()
    if rng.random() < 0.1 and told[0].kind.key in ("name", "city", "code", "number"):
        # The user corrects themselves: the later value counts.
        words = draw_words(told[0].kind, facts, rng)
        correction = rng.choice(("No, wait: {s}", "Sorry, I made a mistake. {s}", "Actually, {s}")).format(
            s=fill(rng, told[0].kind.says, words)
        )
        told[0] = Told(told[0].kind, words, correction)
        exchanges.append(tell(told[0], rng))
    size = sum(len(e.user) + len(e.answer) + 12 for e in exchanges)
    target = size + distance
    while size < target:
        for exchange in filler():
            size += len(exchange.user) + len(exchange.answer) + 12
            if size < 6600:
                exchanges.append(exchange)
    # Each fact is worth asking for twice: copying a name letter by letter is what takes the most practice.
    questions = rng.sample(told, rng.randint(1, len(told)))
    questions += rng.choices(told, k=rng.choice((0, 1, 1, 2)))
    for number, fact in enumerate(questions):
        exchanges.append(ask(fact, rng))
        if rng.random() < 0.07:
            exchanges.append(ask_missing(facts, rng, taken))
        if rng.random() < 0.4 and number + 1 < len(questions):
            exchanges += filler()
    return exchanges


def introduction_by_system(facts: Facts, rng: Rng) -> tuple[str, Exchange]:
    """(a system message that names the user, the question for it)."""
    words = draw_words(KINDS[0], facts, rng)
    system = rng.choice(
        (
            "The user's name is {v}.",
            "You are talking with {v}.",
            "The user is called {v}. Be friendly.",
            "User name: {v}",
        )
    ).format(**words)
    told = Told(KINDS[0], words, system)
    return system, ask(told, rng)
