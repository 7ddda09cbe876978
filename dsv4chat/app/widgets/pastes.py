"""Large pasted texts: the input shows a short line for each, the message has the text."""

from dsv4chat.app.wording import plural

LARGE_CHARACTERS = 2_000
LARGE_LINES = 30


class Pastes:
    """The texts behind the lines that stand for them."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._count = 0

    def fold(self, text: str, most: int = LARGE_CHARACTERS, most_lines: int = LARGE_LINES) -> str:
        """`text` itself, or the line that stands for it if it is larger than that."""
        lines = text.count("\n") + 1
        if len(text) <= most and lines <= most_lines:
            return text
        self._count += 1
        line = f"[pasted text {self._count}: {plural(len(text), 'character')}, {plural(lines, 'line')}]"
        self._texts[line] = text
        return line

    def expand(self, text: str) -> str:
        """`text` with the whole texts in place of the lines that stand for them."""
        for line, whole in self._texts.items():
            text = text.replace(line, whole)
        return text

    def forget_all(self) -> None:
        """Let go of the texts."""
        self._texts.clear()
