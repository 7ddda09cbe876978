"""The first half of the parser: a completion's pieces to one stream in which control tokens are single marks.

A mark is a lone surrogate, a code point that no text can hold, so the second half (parser.py) works on plain
strings and still tells a control token from text that looks like one. Pieces that come with their id are
decided by the id: ordinary ids are text whatever they spell. In pieces of text alone, `</think>`, `｜DSML｜`
and the end-of-sentence token are found by their spelling; every other control token is ordinary text there.
"""

import codecs
import re

from dsv4chat.encoding.template import DSML, EOS, THINK_END
from dsv4chat.encoding.tokenizer import Tokenizer

MARK_THINK_END = "\ud800"
MARK_DSML = "\ud801"  # known by its id: never shown
MARK_DSML_TEXT = "\ud802"  # known by its spelling only: shown when it turns out not to be a tag
_FIRST_OTHER, _LAST_OTHER = 0xD810, 0xDFFF
ANY_MARK = re.compile("[\ud800-\udfff]")

_SPELLED = re.compile("|".join(map(re.escape, (THINK_END, DSML, EOS))))
_BEGINNINGS = frozenset(word[:n] for word in (THINK_END, DSML, EOS) for n in range(1, len(word)))
_LONGEST = max(map(len, _BEGINNINGS))


def visible(marked: str) -> str:
    """Marked text as a person may see it: without control tokens, but with text that only looked like one."""
    return ANY_MARK.sub("", marked.replace(MARK_DSML_TEXT, DSML))


class Lexer:
    """`push` and `flush` return marked text. `ended`: a stop token came, and nothing counts after it."""

    def __init__(self, tokenizer: Tokenizer | None) -> None:
        self._tokenizer = tokenizer
        self._held = ""
        self._pairs: codecs.IncrementalDecoder | None = None
        self._others: dict[str, str] = {}
        self._names = {MARK_THINK_END: THINK_END, MARK_DSML: DSML, MARK_DSML_TEXT: DSML}
        self.ended = False

    def push(self, text: str, number: int | None) -> str:
        if self.ended:
            return ""
        if number is None or self._tokenizer is None:
            return self._by_spelling(self._well_formed(text))
        before = self._release()
        if number not in self._tokenizer.control_ids:
            return before + self._well_formed(text)
        name = self._tokenizer.token_text(number)
        # What stands before the token's own spelling is the rest of a character that was never finished.
        before += self._well_formed(text.removesuffix(name))
        if number in self._tokenizer.stop_ids:
            self.ended = True
            return before
        return before + self._mark(name)

    def tail(self, text: str) -> str:
        """Text that is known to be ordinary, such as the end of a character that was never finished."""
        return "" if self.ended else self._release() + self._well_formed(text)

    def flush(self) -> str:
        """What was held back as the possible beginning of a control token."""
        return self._release()

    def spelled(self, marked: str) -> str:
        """Marked text with every control token written out."""
        return ANY_MARK.sub(lambda found: self._names.get(found.group(), ""), marked)

    def _release(self) -> str:
        held, self._held = self._held, ""
        if self._pairs is not None:
            held += self._pairs.decode(b"", True)
            self._pairs = None
        return held

    def _by_spelling(self, text: str) -> str:
        text = self._held + text
        out = []
        at = 0
        for found in _SPELLED.finditer(text):
            out.append(text[at : found.start()])
            at = found.end()
            if found.group() == EOS:
                self.ended = True
                self._held = ""
                return "".join(out)
            out.append(MARK_THINK_END if found.group() == THINK_END else MARK_DSML_TEXT)
        keep = len(text)
        for start in range(max(at, len(text) - _LONGEST), len(text)):
            if text[start:] in _BEGINNINGS:
                keep = start
                break
        self._held = text[keep:]
        out.append(text[at:keep])
        return "".join(out)

    def _well_formed(self, text: str) -> str:
        """Joins surrogate pairs that a sender cut in two; a half without its other half becomes U+FFFD."""
        if self._pairs is None:
            try:
                text.encode("utf-8")
            except UnicodeEncodeError:
                self._pairs = codecs.getincrementaldecoder("utf-16-le")("replace")
            else:
                return text
        return self._pairs.decode(text.encode("utf-16-le", "surrogatepass"))

    def _mark(self, name: str) -> str:
        if name == THINK_END:
            return MARK_THINK_END
        if name == DSML:
            return MARK_DSML
        mark = self._others.get(name)
        if mark is None:
            if _FIRST_OTHER + len(self._others) > _LAST_OTHER:
                return ""
            mark = self._others[name] = chr(_FIRST_OTHER + len(self._others))
            self._names[mark] = name
        return mark
