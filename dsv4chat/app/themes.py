"""The two looks of the program, calm and of even contrast; all of Textual's own themes can be chosen too."""

from textual.theme import Theme

DARK = Theme(
    name="dsv4-dark",
    primary="#6ea8fe",
    secondary="#8b9dc3",
    accent="#5ad1c8",
    warning="#e0af68",
    error="#f7768e",
    success="#8fce7e",
    foreground="#d7dce5",
    background="#14171f",
    surface="#1a1e28",
    panel="#222734",
    dark=True,
    variables={
        "border": "#39415a",
        "border-blurred": "#2c3345",
        "footer-background": "#14171f",
        "footer-key-foreground": "#6ea8fe",
        "footer-description-foreground": "#8d96a8",
        "input-selection-background": "#6ea8fe 35%",
        "scrollbar": "#2c3345",
        "scrollbar-background": "#14171f",
        "scrollbar-hover": "#39415a",
        "scrollbar-active": "#6ea8fe",
    },
)

LIGHT = Theme(
    name="dsv4-light",
    primary="#2459c7",
    secondary="#55658a",
    accent="#0c8078",
    warning="#93610a",
    error="#b3243c",
    success="#2f7d32",
    foreground="#1d2330",
    background="#fbfbf9",
    surface="#f2f2ee",
    panel="#e8e8e2",
    dark=False,
    variables={
        "border": "#bcc1cb",
        "border-blurred": "#d5d8de",
        "footer-background": "#fbfbf9",
        "footer-key-foreground": "#2459c7",
        "footer-description-foreground": "#5d6675",
        "input-selection-background": "#2459c7 25%",
        "scrollbar": "#d5d8de",
        "scrollbar-background": "#fbfbf9",
        "scrollbar-hover": "#bcc1cb",
        "scrollbar-active": "#2459c7",
    },
)
