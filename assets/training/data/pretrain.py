"""Pretraining documents: WordNet read aloud, and everyday chats between people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .chat import Rng, a, capital
from .sources import RUDE, read_chat
from .wordnet import Synset, WordNet, read_wordnet

_KIND_OF = (
    "{aw} is a kind of {h}.",
    "{w} is a kind of {h}.",
    "Every {w} is {ah}.",
    "One kind of {h} is the {w}.",
)
_SAME = ("Another word for {w} is {s}.", "{w} means the same as {s}.", "{w}, also called {s}.")


def _entry(synset: Synset, net: WordNet, rng: Rng) -> str:
    """One meaning in a few sentences."""
    word = synset.words[0]
    definition = synset.definition
    shape = rng.randrange(5)
    if shape == 0:
        lines = [f"{capital(word)}: {definition}."]
    elif shape == 1:
        lines = [f"{capital(word)} means {definition}."]
    elif shape == 2 and synset.pos == "n":
        lines = [f"What is {a(word)}? {capital(definition)}."]
    elif shape == 3:
        lines = [f'The word "{word}" means: {definition}.']
    else:
        lines = [f"{capital(definition)} - {word}."]
    if len(synset.words) > 1 and rng.random() < 0.6:
        lines.append(capital(rng.choice(_SAME).format(w=word, s=synset.words[1])))
    if synset.pos == "n" and synset.hypernyms and rng.random() < 0.6:
        above = net.synsets.get(("n", synset.hypernyms[0]))
        if above:
            broader = above.words[0]
            lines.append(capital(rng.choice(_KIND_OF).format(w=word, aw=a(word), h=broader, ah=a(broader))))
    lines += [capital(example) + ("" if example[-1] in ".!?" else ".") for example in synset.examples[:3]]
    return " ".join(lines)


def dictionary(net: WordNet, rng: Rng) -> Iterator[str]:
    """Documents of five to nine meanings each, the whole of WordNet once, in random order."""
    keys = sorted(net.synsets)
    rng.shuffle(keys)
    lines: list[str] = []
    wanted = 7
    for key in keys:
        text = _entry(net.synsets[key], net, rng)
        if RUDE.search(text) or len(text) > 500:
            continue
        lines.append(text)
        if len(lines) == wanted:
            yield "\n".join(lines)
            lines, wanted = [], rng.randint(5, 9)
    if lines:
        yield "\n".join(lines)


def chats(rng: Rng) -> Iterator[str]:
    """Documents of up to 24 lines of one chat each."""
    documents = []
    for messages in read_chat():
        for start in range(0, len(messages), 24):
            part = messages[start : start + 24]
            if len(part) >= 4:
                documents.append("\n".join(f"- {line[:400]}" for line in part))
    rng.shuffle(documents)
    yield from documents


def pretraining_documents(wordnet_archive: Path, rng: Rng) -> list[str]:
    """All documents, in random order: WordNet twice in different words, the chats once."""
    net = read_wordnet(wordnet_archive)
    documents = [*dictionary(net, rng), *dictionary(net, rng), *chats(rng)]
    rng.shuffle(documents)
    return documents
