"""How people ask for what they told: a kind's own questions, a request in any frame, questions put together."""

from __future__ import annotations

from .chat import Rng
from .held_out import is_held_phrasing
from .phrasing import asking, surrounded
from .recall_kinds import Kind

_NOUNS = {
    "name": "my name|my name|my own name|the name I told you|the name that I gave you|my name again|what I am called|who I am|how I am called",
    "city": "my city|the city I live in|the place where I live|my home town|where I live",
    "pet": "the name of my {x}|my {x}'s name|what my {x} is called",
    "friend": "the name of my {y}|my {y}'s name|what my {y} is called",
    "code": "the code|the code I gave you|the word I asked you to remember|what I asked you to remember",
    "age": "my age|how old I am",
    "colour": "my favourite colour|the colour I like best",
    "food": "my favourite food|what I like to eat",
    "job": "my job|what my job is",
    "birthday": "my birthday|the date of my birthday|when my birthday is",
    "number": "my number|the number I told you",
    "thing": "where the {x} is|where I put the {x}|the place of my {x}",
}
_WHEN = (
    "",
    "",
    " at the beginning",
    " earlier",
    " before",
    " when we started",
    " in my first message",
    " a while ago",
    " some time ago",
    " in this chat",
    " above",
    " first",
    " just now",
    " again",
)


def _asking_for_name(rng: Rng) -> str:
    """The question for the name put together from parts."""
    while True:
        say = rng.choice("give you|tell you|use|mention|say|write|introduce myself with|type".split("|"))
        text = rng.choice(
            (
                f"{rng.choice(('Which', 'What'))} name did I {say}{rng.choice(_WHEN)}?",
                f"{rng.choice(('What', 'Which'))} was the name I {rng.choice(('gave you', 'told you', 'used', 'mentioned'))}{rng.choice(_WHEN)}?",
                f"{rng.choice(('Do', 'Can'))} you {rng.choice(('still ', 'maybe ', ''))}{rng.choice(('know', 'remember', 'recall', 'say', 'tell me'))} {rng.choice(('my name', 'who I am', 'what my name is', 'what I am called', 'how I am called', 'the name I gave you'))}?",
                f"{rng.choice(('My name', 'My name again', 'So my name', 'And my name', 'The name I told you'))}{rng.choice((' is', ' was', ', please', '', ' is what'))}?",
                f"I {rng.choice(('told you', 'gave you', 'mentioned', 'wrote'))} my name{rng.choice(_WHEN)}. {rng.choice(('What is it?', 'What was it?', 'Repeat it.', 'Do you remember it?', 'Say it.', 'Which one is it?'))}",
                f"{rng.choice(('What', 'How'))} {rng.choice(('should you call me', 'do you call me', 'do people call me', 'am I called', 'did I say people call me'))}?",
                f"{rng.choice(('Memory test', 'A test', 'Testing you', 'Let me see', 'Now remember'))}: {rng.choice(('who am I?', 'what is my name?', 'my name?', 'what am I called?', 'which name is mine?'))}",
            )
        )
        if not is_held_phrasing(text):
            return text


def draw_question(kind: Kind, words: dict[str, str], rng: Rng) -> str:
    """One of the kind's questions, or a request for it in any frame."""
    draw = rng.random()
    if draw < 0.35:
        user = asking(fill(rng, _NOUNS[kind.key], words), rng)
    elif draw < 0.6 and kind.key == "name":
        user = _asking_for_name(rng)
    else:
        user = fill(rng, kind.asks, words)
    return surrounded(user, rng)


def fill(rng: Rng, options: str, words: dict[str, str]) -> str:
    return rng.choice(options.split("|")).format(**words)
