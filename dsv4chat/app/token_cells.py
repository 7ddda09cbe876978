"""What is known about each token of an answer, ready to be shown: its text beside the stored figures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp

from dsv4chat.encoding import Tokenizer
from dsv4chat.runtime.protocol import Alternative
from dsv4chat.store import MessageRecord, TokenFigures
from dsv4chat.turns import TurnToken

SURPRISING = 0.1  # a token less probable than this is one


@dataclass(frozen=True, slots=True)
class TokenCell:
    """One generated token. text: what it added to the answer, or a control token's name (control)."""

    id: int
    text: str
    kind: str
    control: bool
    logprob: float
    milliseconds: float
    residual: Sequence[float] = ()
    alternatives: Sequence[Alternative] = ()

    @property
    def probability(self) -> float:
        """0 to 1."""
        return exp(min(0.0, self.logprob))


def stored_cells(figures: TokenFigures, tokenizer: Tokenizer) -> list[TokenCell]:
    """The tokens of a stored answer that was made with this tokenizer."""
    decoder = tokenizer.decoder()
    cells = []
    for at, number in enumerate(figures.ids):
        control = number in tokenizer.control_ids
        cells.append(
            TokenCell(
                number,
                tokenizer.token_text(number) if control else decoder.push(number),
                figures.kinds[at],
                control,
                figures.logprobs[at],
                figures.milliseconds[at],
                figures.residual[at],
                figures.alternatives[at],
            )
        )
    return cells


def live_cells(tokens: Iterable[TurnToken], tokenizer: Tokenizer) -> list[TokenCell]:
    """Tokens as they come."""
    return [
        TokenCell(
            token.id,
            tokenizer.token_text(token.id) if token.id in tokenizer.control_ids else token.text,
            token.kind,
            token.id in tokenizer.control_ids,
            token.logprob,
            token.milliseconds,
            token.residual,
            token.alternatives,
        )
        for token in tokens
    ]


def answer_cells(cells: Iterable[TokenCell]) -> list[TokenCell]:
    """The tokens of the answer's text, without what turned out to begin a tool call: line breaks and a "<"
    are taken for text until the next token says what they are."""
    shown: list[TokenCell] = []
    behind_text = False
    for cell in cells:
        if cell.kind == "answer":
            shown.append(cell)
            behind_text = True
        elif cell.kind == "tool" and behind_text:
            while shown and shown[-1].text.strip() in ("", "<", "</"):
                shown.pop()
            behind_text = False
    return shown


def why_not(record: MessageRecord, fingerprint: str | None) -> str | None:
    """Why nothing can be shown of an answer's tokens, as a sentence; None if it can."""
    if record.role != "assistant":
        return "Only answers are made of tokens of the model; select one."
    if fingerprint is None:
        return "The tokens can be shown when the model is loaded."
    made = record.generation
    if made is None or not (record.ids or record.state == "writing"):
        return "No figures of this answer's tokens are in the history."
    if made.tokenizer != fingerprint:
        return f"This answer's tokens are those of another model ({made.model})."
    return None
