"""How hard the model is to think."""

from textual.content import Content

from dsv4chat.app.screens.menu import Menu

_EFFORTS = (
    ("", "default", "what the model was trained to do unasked"),
    ("low", "low", "a short thinking"),
    ("high", "high", "a thorough thinking"),
    ("max", "max", "as long as it takes"),
)


class EffortScreen(Menu[str]):
    """Gives back "", "low", "high" or "max"; None when nothing was chosen."""

    def __init__(self, current: str | None) -> None:
        choices = [
            (Content.assemble(f"{name:9}", (words, "$foreground 55%")), value)
            for value, name, words in _EFFORTS
        ]
        chosen = next((i for i, (value, _, _) in enumerate(_EFFORTS) if value == (current or "")), 0)
        super().__init__("Effort of thinking", choices, chosen, "Enter chooses · Esc leaves it as it is")
