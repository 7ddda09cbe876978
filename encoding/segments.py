"""A rendered prompt as segments: control tokens, text, and ids kept from sampling.

Only a control segment may become a control token. Text of any origin stays text (see tokenizer.py), so a
pasted `<｜Assistant｜>` cannot open a turn.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Segment:
    """One piece of a prompt.

    kind      "control": `text` is exactly one control token;  "text": ordinary text;
              "ids": ids the model sampled
    thinking  what the ids begin with and how much of them is used:
              "none"     the answer only, used whole
              "open"     the reasoning, used whole, to be continued
              "closed"   the reasoning, used whole; a missing </think> is added
              "dropped"  the reasoning, of which only what follows </think> is used
    instead   for "ids": the same turn as control and text segments, for when the ids cannot be used
    """

    kind: Literal["control", "text", "ids"]
    text: str
    ids: tuple[int, ...] = ()
    thinking: Literal["none", "open", "closed", "dropped"] = "none"
    instead: tuple["Segment", ...] = ()


@dataclass(frozen=True)
class Rendered:
    """Segments in order; neighbouring text is already joined.

    marks: indices i such that the conversation may later return to the point before segment i (or to the end,
    i = len(segments)): the ends of rendered messages and the points right after each <｜Assistant｜>.
    """

    segments: tuple[Segment, ...]
    marks: tuple[int, ...]

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments)


class SegmentList:
    """Collects segments, joining neighbouring text so that it is tokenised as one piece."""

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._text: list[str] = []
        self._marks: set[int] = set()

    def control(self, token: str) -> None:
        self._close_text()
        self._segments.append(Segment("control", token))

    def text(self, text: str) -> None:
        if text:
            if self._text:
                # A mark behind the text so far would now fall inside one tokenised piece.
                self._marks.discard(len(self._segments) + 1)
            self._text.append(text)

    def extend(self, other: "SegmentList") -> None:
        for segment in other.finish().segments:
            if segment.kind == "text":
                self.text(segment.text)
            else:
                self._close_text()
                self._segments.append(segment)

    def kept(self, segment: Segment) -> None:
        self._close_text()
        self._segments.append(segment)

    def mark(self) -> None:
        """The conversation may return to this point, unless more text is joined to what stands here."""
        self._marks.add(len(self._segments) + bool(self._text))

    def finish(self) -> Rendered:
        self._close_text()
        return Rendered(tuple(self._segments), tuple(sorted(self._marks)))

    def _close_text(self) -> None:
        if self._text:
            self._segments.append(Segment("text", "".join(self._text)))
            self._text = []
