"""How text is cut for full-text search: words as FTS5's unicode61 sees them, CJK characters one by one.

unicode61 takes a run of Chinese or Japanese for a single word, so nothing inside it could be found; with a
space around each such character a phrase query finds any run of them.
"""

import re
import unicodedata

# Han with its extensions, kana, Thai, Lao, Khmer, Myanmar: scripts written without spaces between words.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
_TERM = re.compile(r'"([^"]*)("?)|([^\s"]+)')
_WORD = re.compile(r"[^\W_]+")


def segment(text: str) -> str:
    """`text` with a space around every character of a script written without spaces."""
    return _UNSPACED.sub(r" \g<0> ", text)


def terms(asked: str) -> list[str]:
    """What a person looks for: words, and phrases in "double quotes", without what is no word at all."""
    found = [match[1] if match[3] is None else match[3] for match in _TERM.finditer(asked.replace("\0", " "))]
    return [term for term in found if any(character.isalnum() for character in term)]


def query(asked: str) -> str | None:
    """An FTS5 query that finds messages with all terms, the last one as a beginning; None without a word.

    Nothing a person types is an operator: each term becomes a quoted phrase. A phrase whose quotes are
    closed, or a word with a space after it, is whole and no beginning.
    """
    found = terms(asked)
    if not found:
        return None
    open_ended = asked[-1:].isspace() or (asked.rstrip().endswith('"') and asked.count('"') % 2 == 0)
    return " ".join(f'"{segment(term).strip()}"' for term in found) + ("" if open_ended else "*")


def pattern(asked: str) -> re.Pattern[str] | None:
    """What finds the terms of a query in a text, to show where they stand; None without a word."""
    found = terms(plain(asked))
    whole_last = (query(asked) or "*")[-1] != "*"
    shapes = [_shape(term, whole=whole_last or term is not found[-1]) for term in found]
    return (
        re.compile("|".join(f"(?:{shape})" for shape in shapes if shape), re.IGNORECASE) if shapes else None
    )


def plain(text: str) -> str:
    """`text` without accents, each character in its place, as the index sees it."""
    return text if text.isascii() else "".join(map(_base, text))


def _base(character: str) -> str:
    return character if character.isascii() else unicodedata.normalize("NFD", character)[0]


def _shape(term: str, *, whole: bool) -> str:
    shape = ""
    for piece in segment(term).split():
        for word in _WORD.findall(piece):
            unspaced = bool(_UNSPACED.match(word))
            between = r"[\W_]*" if unspaced or not shape else r"[\W_]+"
            edge = "" if unspaced else r"(?<![^\W_])"
            shape += (between if shape else "") + edge + re.escape(word)
    if whole and shape and not _UNSPACED.match(shape[-1]):
        shape += r"(?![^\W_])"
    return shape
