"""Answers of a given length in tokens: prose, one fence, one list, one table."""

from dsv4chat.encoding import Tokenizer

KINDS = ("prose", "fence", "list", "table")
END = "zzENDzz"  # the last word of every answer
_SENTENCE = (
    "the quick answer to this question takes a while to write down so that the screen has something to show "
    "and every paragraph is as long as those of a patient writer who says things twice"
)
_WORDS = tuple(_SENTENCE.split())


def answer(kind: str, tokens: int, tokenizer: Tokenizer) -> list[int]:
    """About `tokens` ids of an answer of one kind; it ends with `END` and its block is closed."""
    ids = tokenizer.encode_text(_beginning(kind))
    tail = tokenizer.encode_text(_ending(kind))
    number = 0
    while len(ids) < tokens - len(tail):
        ids += tokenizer.encode_text(_line(kind, number))
        number += 1
    return [*ids, *tail]


def question(number: int) -> str:
    """A message of the history."""
    return f"Question {number}: " + " ".join(_words(number, 12)) + "?"


def earlier_answer(number: int) -> str:
    """An answer of the history: a paragraph, a list and a little code."""
    words = " ".join(_words(number, 40))
    items = "\n".join(f"- {' '.join(_words(number + item, 6))}" for item in range(3))
    return f"**Answer {number}**: {words}.\n\n{items}\n\n```python\nvalue = {number}\n```\n"


def _beginning(kind: str) -> str:
    return {"fence": "```python\n", "table": "| number | words | more |\n|---:|---|---|\n"}.get(kind, "")


def _ending(kind: str) -> str:
    return {
        "prose": f" {END}",
        "fence": f"# {END}\n```",
        "list": f"- {END}",
        "table": f"| 0 | {END} | end |",
    }[kind]


def _line(kind: str, number: int) -> str:
    words = " ".join(_words(number, 8))
    match kind:
        case "prose":
            return f"{words}, **{_WORDS[number % len(_WORDS)]}**" + (".\n\n" if number % 9 == 8 else ", ")
        case "fence":
            return f"def function_{number}(value: int) -> int:  # {' '.join(_words(number, 4))}\n"
        case "list":
            return f"- item {number}: {words}\n"
        case _:
            return f"| {number} | {' '.join(_words(number, 4))} | {_WORDS[number % len(_WORDS)]} |\n"


def _words(number: int, count: int) -> list[str]:
    return [_WORDS[(number * 7 + step) % len(_WORDS)] for step in range(count)]
