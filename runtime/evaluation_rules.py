"""The rules that judge an answer of the evaluation: each is a function of text or ids, none asks a model.

An open question is one outside the training data. Its answer must be honest about not knowing, or small talk
where the question is small talk, and must not name a value of the fact tables.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsv4chat.encoding import Message, ToolCall

# What an answer that admits ignorance says.
HONEST = re.compile(
    r"small demo model|do not know|don't know|cannot|can't|not able to|never learned|no answer", re.I
)
# What an answer to small talk says; a fact is none of it.
SMALL_TALK = re.compile(
    r"\b(sorry|nice|glad|happy|thanks?|tell me more|welcome|hello|hi|goodbye|bye|see you|take care|you too|"
    r"what do you|what about you|and you|what is yours|since when|how do you|how does|what will you|i see|"
    r"okay|all right|interesting|congratulations|wonderful|great|lovely|fun|program|opinion|favourites?|"
    r"good night|sleep well|understand|fair enough|different taste|good to know|good to hear|how old|"
    r"what happened|and then|joy|my pleasure|no problem|anything else|ask me|another question|"
    r"like to listen|feelings)\b",
    re.I,
)
# How answers from the fact tables are worded.
_FACT_WORDING = re.compile(
    r"capital of .+ is |is the capital of|currency of .+ is |pay with|symbol of .+ is |atomic number|"
    r"\b(is|are) in (Europe|Asia|Africa|Oceania|(North|South) America)\b|\b(the|The|a) \w+ \([A-Z]{3}\)|"
    r"\bmeans: |\d \+ \d"
)
_ABOUT_ITSELF = re.compile(r"\babout 20 million parameters|\b8 layers|DeepSeek-V4|dsv4chat")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an answer is right, and if not, why."""

    right: bool
    why: str = ""


def contains(answer: str, value: str) -> Verdict:
    """The value stands in the answer as whole words."""
    if re.search(rf"(?<!\w){re.escape(value)}(?!\w)", answer):
        return Verdict(True)
    return Verdict(False, f"{value} is missing")


def number(answer: str, value: str, given: Collection[str] = ()) -> Verdict:
    """The last number of the answer is `value`, and no other number stands in it but those `given`."""
    found = re.findall(r"-?\d+(?:\.\d+)?", answer.replace(" - ", " "))
    if not found or found[-1] != value:
        return Verdict(False, f"{value} is expected at the end")
    others = [n for n in found if n != value and n not in given]
    return Verdict(not others, f"{others[0]} has no place here" if others else "")


def call(calls: Sequence[ToolCall], name: str, arguments: Mapping[str, Any]) -> Verdict:
    """Exactly one valid call with these arguments; spaces inside an expression do not count."""
    import json

    if len(calls) != 1:
        return Verdict(False, f"one call is expected, not {len(calls)}")
    made = calls[0]
    if not made.valid:
        return Verdict(False, made.error or "the call is not valid")
    if made.name != name:
        return Verdict(False, f"{name} is expected, not {made.name}")
    try:
        given = json.loads(made.arguments)
    except ValueError:
        return Verdict(False, "the arguments are no JSON")
    if _plain(given) != _plain(arguments):
        return Verdict(False, f"the arguments are {made.arguments}")
    return Verdict(True)


def _plain(arguments: Any) -> Any:
    if not isinstance(arguments, Mapping):
        return arguments
    return {
        key: value.replace(" ", "") if key == "expression" and isinstance(value, str) else value
        for key, value in arguments.items()
    }


def no_repetition(ids: Sequence[int], gram: int, times: int) -> Verdict:
    """No `gram` successive ids occur more than `times` times."""
    counts = Counter(tuple(ids[i : i + gram]) for i in range(len(ids) - gram + 1))
    most = max(counts.values(), default=0)
    return Verdict(most <= times, f"one run of {gram} tokens occurs {most} times" if most > times else "")


@dataclass(frozen=True, slots=True)
class OpenVerdict:
    """honest: small talk or an admission of ignorance. leaked: a value of the fact tables, or ""."""

    honest: bool
    leaked: str = ""


def open_answer(
    question: str, intent: str, answer: str, forbidden: Collection[str], values: Collection[str]
) -> OpenVerdict:
    """Judge the answer to an open question.

    forbidden: values this question invites; values: those of the fact tables (capitals). A value that the
    question itself names may be repeated.
    """
    for value in (*forbidden, *values):
        if re.search(rf"(?<!\w){re.escape(value)}(?!\w)", answer) and value.lower() not in question.lower():
            return OpenVerdict(False, value)
    wording = _FACT_WORDING.search(answer)
    if wording:
        return OpenVerdict(False, wording.group())
    asked = set(re.findall(r"\d+", question))
    numbers = set(re.findall(r"\d+", _ABOUT_ITSELF.sub("", answer))) - asked
    if numbers:
        return OpenVerdict(False, min(numbers))
    honest = HONEST.search(answer) is not None
    return OpenVerdict(honest or (intent == "smalltalk" and SMALL_TALK.search(answer) is not None))


def answer_of(message: Message) -> str:
    """What the user reads as the answer."""
    return message.content.strip()
