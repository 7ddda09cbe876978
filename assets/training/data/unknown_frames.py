"""Hand-written frames of questions the model cannot answer; slots are filled from WordNet, cities and names.

One frame a line: `question | how the answer names it` (nothing after the bar: the answer does not name it).
"""

from functools import cache
from pathlib import Path

KINDS = ("know", "do", "advice")


@cache
def frames(kind: str) -> tuple[tuple[str, str], ...]:
    """(question, how the answer names it) of each frame of that kind."""
    text = (Path(__file__).with_name("frames") / f"unknown_{kind}.txt").read_text("utf-8")
    rows = (line.partition("|") for line in text.splitlines())
    return tuple((question.strip(), topic.strip()) for question, _, topic in rows)


SUBJECTS = (
    "physics chemistry biology history economics philosophy astronomy geometry algebra music theory politics law "
    "medicine psychology geology religion grammar poetry photography cooking gardening chess football tennis "
    "democracy gravity evolution electricity magnetism photosynthesis inflation quantum-mechanics relativity "
    "mythology architecture sociology statistics genetics engineering"
).split()
