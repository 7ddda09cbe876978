"""Text from a model, a tool or a file, made harmless for a terminal: control characters shown, not obeyed."""

import re

# C0 except newline and tab, DEL, C1, the bidirectional controls, which reorder what stands around them, and
# half surrogate pairs, which no terminal can be sent.
# Zero-width joiners stay: emoji and several scripts are written with them.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    """`text` with every control character replaced: ESC by U+241B and so on, others by <U+XXXX>."""
    return _CONTROL.sub(_picture, text)


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"
