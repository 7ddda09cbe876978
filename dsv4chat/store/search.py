"""How text is cut for full-text search: words as FTS5's unicode61 sees them, CJK characters one by one.

unicode61 takes a run of Chinese or Japanese for a single word, so nothing inside it could be found; with a
space around each such character a phrase query finds any run of them.
"""

import re

# Han with its extensions, kana, Thai, Lao, Khmer, Myanmar: scripts written without spaces between words.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)


def segment(text: str) -> str:
    """`text` with a space around every character of a script written without spaces."""
    return _UNSPACED.sub(r" \g<0> ", text)


def query(words: str) -> str | None:
    """An FTS5 query that finds messages with all `words`, the last one as a beginning; None without a word.

    Nothing a person types is an operator: each word becomes a quoted phrase.
    """
    phrases = [segment(word).strip() for word in words.replace('"', " ").replace("\0", " ").split()]
    phrases = [phrase for phrase in phrases if any(character.isalnum() for character in phrase)]
    if not phrases:
        return None
    return " ".join(f'"{phrase}"' for phrase in phrases) + "*"
