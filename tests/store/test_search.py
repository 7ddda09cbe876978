"""Search finds exactly the messages it should, newest first, a page at a time, and shows where."""

import random
import re
import unicodedata
from collections.abc import Iterator

import pytest

from dsv4chat.store import ConversationSettings, Found, Repository, open_in_memory


@pytest.fixture
def history() -> Iterator[Repository]:
    repository = open_in_memory()
    yield repository
    repository.close()


@pytest.fixture
def talk(history: Repository) -> int:
    return history.create_conversation(ConversationSettings()).id


def add(history: Repository, talk: int, text: str, thought: str | None = None) -> int:
    return history.add_message(talk, None, "assistant", text, reasoning=thought).id


VOCABULARY = (
    "the",
    "then",
    "theory",
    "a",
    "an",
    "Ann",
    "über",
    "uber",
    "Öl",
    "naïve",
    "x1",
    "x",
    "12",
    "123",
)


def words_of(text: str) -> list[str]:
    """Words without accents and capitals, by the Unicode database."""
    plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(c))
    return re.findall(r"[^\W_]+", plain)


def matches(text: str, terms: list[list[str]], *, beginning: bool) -> bool:
    """Whether each phrase of `terms` is in `text`; the last word of the last one may be a beginning."""
    words = words_of(text)
    for number, term in enumerate(terms):
        last = beginning and number == len(terms) - 1
        places = range(len(words) - len(term) + 1)
        if not any(
            words[at : at + len(term) - 1] == term[:-1]
            and (
                words[at + len(term) - 1].startswith(term[-1])
                if last
                else words[at + len(term) - 1] == term[-1]
            )
            for at in places
        ):
            return False
    return True


def test_random_queries_find_what_reading_every_message_finds(history: Repository, talk: int) -> None:
    generator = random.Random(7)
    texts = {}
    for _ in range(150):
        said = " ".join(generator.choices(VOCABULARY, k=generator.randint(1, 6)))
        texts[add(history, talk, said)] = said
    for _ in range(250):
        terms = [
            generator.choices(VOCABULARY, k=generator.choice((1, 1, 2)))
            for _ in range(generator.randint(1, 2))
        ]
        closed = generator.random() < 0.5
        shown = [f'"{" ".join(term)}"' if len(term) > 1 else term[0] for term in terms]
        asked = " ".join(shown) + (" " if closed else "")
        if not closed and asked.endswith('"'):
            asked = asked[:-1]
        expected = [
            number
            for number in sorted(texts, reverse=True)
            if matches(texts[number], [words_of(" ".join(term)) for term in terms], beginning=not closed)
        ]
        found = history.search(asked, limit=1000)
        assert [hit.message for hit in found] == expected, asked
        for hit in found:
            assert hit.marks, (asked, hit)


def test_results_come_newest_first_and_page_by_page(history: Repository, talk: int) -> None:
    ids = [add(history, talk, f"zebra {number}") for number in range(25)]
    seen: list[Found] = []
    before = None
    while page := history.search("zebra", limit=10, before=before):
        seen += page
        before = page[-1].message
    assert [hit.message for hit in seen] == ids[::-1]


def test_search_in_one_conversation_finds_nothing_of_others(history: Repository, talk: int) -> None:
    other = history.create_conversation(ConversationSettings()).id
    mine, _ = add(history, talk, "zebra"), add(history, other, "zebra")
    assert [hit.message for hit in history.search("zebra", conversation=talk)] == [mine]


def test_all_branches_are_searched(history: Repository, talk: int) -> None:
    first = history.add_message(talk, None, "user", "zebra question")
    history.edit(first.id, "lion question")
    assert [hit.excerpt for hit in history.search("zebra")] == ["zebra question"]


@pytest.mark.parametrize(
    ("asked", "text", "marked"),
    [
        ("zeb", "A zebra is no azebra.", ["zeb"]),
        ("zebra ", "Zebras, zebra.", ["zebra"]),
        ('"red zebra" fast', "fast red  zebra, red, fast!", ["fast", "red zebra", "fast"]),
        ("cafe", "in the CAFÉ", ["CAFÉ"]),
        ("深度", "我们讨论深度求索", ["深度"]),
        ("a-b:c", "see a-b:c^d", ["a-b:c"]),
        ("naïve ", "so naive", ["naive"]),
    ],
)
def test_the_excerpt_shows_where_the_words_stand(
    history: Repository, talk: int, asked: str, text: str, marked: list[str]
) -> None:
    add(history, talk, text)
    (hit,) = history.search(asked)
    assert [hit.excerpt[start:end] for start, end in hit.marks] == marked
    assert hit.where == "content"


def test_the_excerpt_is_short_and_of_the_thinking_if_only_that_matches(
    history: Repository, talk: int
) -> None:
    add(history, talk, "Yes.", "lorem " * 500 + "zebra\n\n" + "ipsum " * 500)
    (hit,) = history.search("zebra")
    assert hit.where == "reasoning"
    assert len(hit.excerpt) < 200
    assert hit.excerpt.startswith("…")
    assert hit.excerpt.endswith("…")
    assert [hit.excerpt[start:end] for start, end in hit.marks] == ["zebra"]


def test_nothing_a_person_types_is_an_operator_or_an_error(history: Repository, talk: int) -> None:
    add(history, talk, "plain text AND more")
    generator = random.Random(3)
    signs = [
        '"',
        "*",
        "^",
        "(",
        ")",
        "AND",
        "OR",
        "NOT",
        "NEAR(",
        ":",
        "-",
        "{",
        "}",
        "\0",
        "\ud800",
        " ",
        "text",
    ]
    for _ in range(400):
        history.search("".join(generator.choices(signs, k=generator.randint(1, 8))))
    assert history.search("text OR nothing") == []
    assert len(history.search("text AND more")) == 1


def test_the_work_of_a_broad_search_does_not_grow_with_the_history(history: Repository, talk: int) -> None:
    """Steps of SQLite's machine: they would grow with each match if matches were sorted or counted."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    def work(asked: str) -> int:
        nonlocal steps
        steps = 0
        assert len(history.search(asked, limit=20)) == 20
        return steps

    history.connection.set_progress_handler(count, 1)
    queries = ("t", "th", "the", "the ", "ther", "the other", '"the other one"')
    totals = []
    for size in (50, 1000):
        for number in range(size):
            add(history, talk, f"the other one there {number}")
        totals.append([work(asked) for asked in queries])
    history.connection.set_progress_handler(None, 0)
    for few, many in zip(*totals, strict=True):
        assert many < 1.5 * few
