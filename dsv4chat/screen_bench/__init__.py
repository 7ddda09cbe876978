"""The benchmark of the screen: the app in a real pseudo-terminal, fed at a fixed rate by a scripted engine.

`driver.py` runs a program in a terminal, types into it and measures; `chat.py` is that program with the app
in it, `plain.py` the same text through Textual's own `MarkdownStream`.
"""
