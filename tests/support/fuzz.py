"""Nasty text for the screen, and what may never be drawn from it."""

import random
import re

from textual.app import App

PIECES = (
    "word", " ", "\n", "\n\n", "\t", "[b]", "[/b]", "[red on blue]", "[@click=app.quit]x[/]", "**",
    "*", "_", "`", "```", "~~~", "```py\n", "- ", "1. ", "  ", "    ", "> ", "# ",
    "| a | b |\n|---|---|\n| c | d |\n", "|", "---\n", "<b>", "<!-- x -->", "</think>", "<think>",
    "<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>", "｜DSML｜", '<｜DSML｜invoke name="x">',
    "<tool_result>",    "[x](javascript:alert('1'))", "[x](\"')", "![i](http://x/\x1b)", "<http://x.org>", "[l](http://x\x1b]8;;y)",
    "www.example.org", "[a]: http://b", "&#27;", "&#x202e;", "&lt;", "\\", "\x00", "\x07", "\x08",
    "\r", "\r\n", "\x0b", "\x0c", "\x0e", "\x1b[2J", "\x1b]52;c;QQ==\x07", "\x1b]0;title\x1b\\",
    "\x1bP+q\x1b\\", "\x1b[?1049l", "\x1bc", "\x1b[6n", "\x1b[201~", "\x1b_G\x1b\\", "\x7f", "\x85",
    "\x9b31m", "\x9d0;t\x9c", "\u200b", "\u200d", "\ufeff", "\u2028", "\u202e", "\u2066", "\u200f", "\u061c",
    "שלום", "مرحبا", "深度求索", "👩\u200d👩\u200d👧", "🇫🇷", "é́́", "\ud83d", "ﷺ", "\U000e0041", "\ufffd",
    "x" * 300, "表" * 100, "2>&1", "</", '{"a": [', "$x$", "e\u0301" * 30, "0\ufe0f\u20e3", "\U0010ffff",
    "ภาษาไทย",
)  # fmt: skip
# C0 but newline, DEL, C1, what reorders text, halves of surrogate pairs.
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_COLOURS = re.compile("\x1b\\[[0-9;:]*m")


def nasty(generator: random.Random, most: int = 25) -> str:
    """A text of up to `most` pieces, now and then with a line of many thousands of characters."""
    text = "".join(generator.choices(PIECES, k=generator.randint(1, most)))
    if generator.random() < 0.02:
        text += generator.choice(("x", "表", "\x1b[2J", "\u202e", "a ")) * generator.randint(1000, 20_000)
    return text


def nasty_bytes(generator: random.Random) -> bytes:
    """Bytes of which some are no UTF-8."""
    raw = bytearray(nasty(generator).encode("utf-8", "surrogatepass"))
    for _ in range(generator.randint(1, 6)):
        place = generator.randrange(len(raw) + 1)
        raw[place:place] = generator.choice(
            (b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f", b"\xc0\xaf", b"\xed\xa0\x80")
        )
    return bytes(raw)


def cuts(generator: random.Random, whole: str, pieces: int = 4) -> list[str]:
    """`whole` in pieces, some of them empty."""
    places = sorted(generator.randrange(len(whole) + 1) for _ in range(pieces - 1))
    return [whole[start:end] for start, end in zip([0, *places], [*places, len(whole)], strict=True)]


def check_screen(app: App[None]) -> str:
    """That the screen holds nothing a terminal would obey, but colours; returns its text, line by line."""
    width, height = app.size
    drawn = []
    for strip in app.screen._compositor.render_strips()[:height]:
        text = "".join(segment.text for segment in strip)
        assert not OBEYED.search(text), repr(text)
        assert strip.cell_length >= width or not text.strip()
        sent = strip.render(app.console)
        assert not OBEYED.search(_COLOURS.sub("", sent)), repr(sent)
        drawn.append(text)
    return "\n".join(drawn)
