"""The fact tables that the generators fill their templates with, as one plain JSON-able record."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Country:
    """One country: names as a person writes them in the middle of a sentence ("the Netherlands")."""

    name: str
    capital: str
    continent: str
    currency: str
    code: str
    zone: str
    """IANA time zone of the capital."""


@dataclass(frozen=True)
class Facts:
    """Everything the generators know. Lists are ordered, the most frequent word first."""

    countries: list[Country]
    elements: list[tuple[str, str, int]]
    """(name, symbol, atomic number), in order of the number."""
    cities: list[str]
    zones: list[tuple[str, str]]
    """(city, IANA time zone)"""
    definitions: list[tuple[str, str]]
    """(word, definition without a full stop); the model is to know these by heart."""
    rare_words: list[str]
    """Words that exist but that the model is not taught."""
    words: dict[str, list[str]]
    """Vocabulary by kind: animal food person artifact plant substance event feeling place body noun verb adjective."""
    sentences: list[str]
    """Short example sentences, for copying and pasted text."""
    jokes: list[str]
    questions: list[str] = field(default_factory=list)
    """Questions people asked each other, for the model to decline."""
    remarks: list[str] = field(default_factory=list)
    """Things people said to each other that are no questions."""


def save_facts(facts: Facts, path: Path, notice: str) -> None:
    """Write `facts` as JSON with `notice` (where they come from) at the top."""
    body = {"notice": notice, **asdict(facts)}
    path.write_text(json.dumps(body, ensure_ascii=False, indent=1) + "\n", "utf-8")


def load_facts(path: Path) -> Facts:
    """Read what `save_facts` wrote."""
    body = json.loads(path.read_text("utf-8"))
    body.pop("notice")
    body["countries"] = [Country(**country) for country in body["countries"]]
    for name in ("elements", "zones", "definitions"):
        body[name] = [tuple(row) for row in body[name]]
    return Facts(**body)
