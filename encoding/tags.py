"""DSML tags in marked text (see lexer.py): where one ends, and what it says.

Read leniently: spaces around names, missing quotes, and any wrapper name with `call` in it (`toolcalls`,
`function_calls`, ...) are accepted; what cannot be a tag is told apart as early as possible.
"""

import re
from dataclasses import dataclass
from typing import Literal

from dsv4chat.encoding.lexer import MARK_DSML, MARK_DSML_TEXT
from dsv4chat.encoding.template import DSML

_MARKS = "\ud800-\udfff"
_MARK = f"[{MARK_DSML}{MARK_DSML_TEXT}]"
_LONGEST = 1024  # characters of attributes; what is longer without an end is no tag

MARKUP = re.compile(f"</?{_MARK}")
_BEGINNING = re.compile("</?")
_HEAD = re.compile(f"<(/?)({_MARK})[ \t]{{0,16}}([A-Za-z_-]{{0,32}})")
_PLAIN_END = re.compile("[ \t]{0,16}+(>?)")
_ATTRIBUTES = re.compile(f'[^\n>"{_MARKS}]*+(?:"[^"\n{_MARKS}]*+"[^\n>"{_MARKS}]*+)*+>')
_NO_ATTRIBUTE = re.compile(f"[\n{_MARKS}]")
_NAME = re.compile(r'\bname\s*=\s*(?:"([^"\n]*)"|"?([^\s">]*))')
_STRING = re.compile(r'\bstring\s*=\s*"?(true|false)\b')


@dataclass(frozen=True)
class Tag:
    """text[start:end] is a tag. `certain`: its control token is known by id, so it is not just text."""

    start: int
    end: int
    closing: bool
    certain: bool
    word: str
    attributes: str = ""

    @property
    def is_call(self) -> bool:
        return self.word == "invoke"

    @property
    def is_parameter(self) -> bool:
        return self.word == "parameter"

    @property
    def is_wrapper(self) -> bool:
        return "call" in self.word

    @property
    def is_known(self) -> bool:
        return self.is_call or self.is_parameter or self.is_wrapper

    @property
    def name(self) -> str | None:
        return name_attribute(self.attributes)

    @property
    def string(self) -> str | None:
        """The `string` attribute: "true", "false", or None if there is none."""
        found = _STRING.search(self.attributes)
        return found.group(1) if found else None


def name_attribute(attributes: str) -> str | None:
    found = _NAME.search(attributes)
    return None if found is None else found.group(1) or found.group(2) or ""


def is_half_markup(text: str) -> bool:
    """Whether `text` is cut off before the control token of a tag is complete."""
    return f"<{DSML}".startswith(text) or f"</{DSML}".startswith(text)


def next_tag(text: str, at: int) -> Tag | Literal["partial"] | None:
    """The known tag that starts at the `<` at `at`; "partial": more text is needed to tell; None: none does.

    The answer for a text is the same as for any longer text, unless it is "partial".
    """
    head = _HEAD.match(text, at)
    if head is None:
        beginning = _BEGINNING.match(text, at)
        return "partial" if beginning and beginning.end() == len(text) else None
    if head.end() == len(text):
        return "partial"
    closing, mark, word = head.groups()
    if word in ("invoke", "parameter") and not closing:
        end = _attributes_end(text, head.end())
    else:
        plain = _PLAIN_END.match(text, head.end())
        end = plain.end() if plain and plain.group(1) else -1 if plain and plain.end() == len(text) else 0
    if end < 0:
        return "partial"
    tag = Tag(at, end, bool(closing), mark == MARK_DSML, word, text[head.end() : end])
    return tag if end and tag.is_known else None


def _attributes_end(text: str, start: int) -> int:
    """Where the tag ends whose attributes begin at `start`; -1 if that is not known yet, 0 if it does not."""
    limit = start + _LONGEST
    found = _ATTRIBUTES.match(text, start, limit)
    if found:
        return found.end()
    stop = _NO_ATTRIBUTE.search(text, start, limit)
    if stop is None and len(text) < limit:
        return -1
    # A quote is left open: the first > closes the tag nevertheless.
    return text.find(">", start, stop.start() if stop else limit) + 1
