"""What comes from the terminal, before Textual reads keys from it.

Textual decodes strictly, so that bytes which are no UTF-8 would end the chat, and takes an escape character
inside a paste for the beginning of keys: a pasted text could press Enter, or Ctrl+Q. Not every terminal takes
such characters out of a paste.
"""

from codecs import getincrementaldecoder
from typing import Any, cast

from textual.driver import Driver

from dsv4chat.app.terminal_output import LastingOutput

_PASTE, _END = "\x1b[200~", "\x1b[201~"
_SHOWN = str.maketrans({"\x1b": "\u241b", "\x00": "\u2400"})


def forgiving(driver: type[Driver]) -> type[Driver]:
    """`driver`, reading through a `TerminalDecoder` and writing to a `LastingOutput`.

    Drivers of no POSIX terminal stay as they are.
    """
    try:
        from textual.drivers import linux_driver
    except ImportError:
        return driver
    if driver is not linux_driver.LinuxDriver:
        return driver

    class ForgivingDriver(linux_driver.LinuxDriver):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            if self._file is not None:
                self._file = cast(Any, LastingOutput(self._file))

        def run_input_thread(self) -> None:
            # The name by which Textual's method looks for its decoder.
            vars(linux_driver)["getincrementaldecoder"] = lambda encoding: TerminalDecoder
            super().run_input_thread()

    return ForgivingDriver


class TerminalDecoder:
    """Bytes to text, in pieces: what is no UTF-8 becomes U+FFFD, ESC and NUL in a paste their pictures."""

    def __init__(self) -> None:
        self._utf8 = getincrementaldecoder("utf-8")(errors="replace")
        self._pasting = False
        self._held = ""  # inside a paste: what may be the beginning of its end
        self._before = ""  # outside: what may be the beginning of a paste's beginning, passed on already

    def decode(self, data: bytes, final: bool = False) -> str:
        """The text of the next bytes, as far as it is certain."""
        text = self._held + self._utf8.decode(data, final)
        self._held = ""
        out = ""
        while text:
            out, text = (self._inside if self._pasting else self._outside)(out, text)
        return out

    def _outside(self, out: str, text: str) -> tuple[str, str]:
        seen = self._before + text
        at = seen.find(_PASTE)
        if at < 0:
            self._before = _beginning(seen, _PASTE)
            return out + text, ""
        after = at + len(_PASTE) - len(self._before)
        self._pasting, self._before = True, ""
        return out + text[:after], text[after:]

    def _inside(self, out: str, text: str) -> tuple[str, str]:
        pasted, end, rest = text.partition(_END)
        if end:
            self._pasting = False
        else:
            self._held = _beginning(pasted, _END)
            pasted = pasted.removesuffix(self._held) if self._held else pasted
        return out + pasted.translate(_SHOWN) + end, rest


def _beginning(text: str, mark: str) -> str:
    """The longest end of `text` that `mark` begins with, but not all of it."""
    return next((mark[:n] for n in range(len(mark) - 1, 0, -1) if text.endswith(mark[:n])), "")
