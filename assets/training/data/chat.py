"""What generators produce (exchanges) and how exchanges become an OpenAI-style request body."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

Rng = random.Random
T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One tool call and what the tool answers."""

    name: str
    arguments: dict[str, Any]
    result: str


@dataclass(frozen=True)
class Step:
    """One assistant message that calls tools (in parallel when there are several)."""

    thought: str
    calls: tuple[Call, ...]
    content: str = ""


@dataclass(frozen=True)
class Exchange:
    """A user turn and the assistant's, with what it thinks first; `steps` are tool calls before the answer.

    `brief` is the answer when a system message asks for as few words as possible, `title` what a list of
    conversations would call it. Both may be empty: then the exchange is not used for that. `aloud` replaces the
    answer when the assistant may not think first and could not say the answer at once.
    """

    user: str
    answer: str
    thought: str = ""
    brief: str = ""
    title: str = ""
    steps: tuple[Step, ...] = ()
    aloud: str = ""


def pick(rng: Rng, options: Sequence[str], **values: str) -> str:
    """One of the templates, filled in."""
    return rng.choice(options).format(**values)


def capital(text: str) -> str:
    """First letter in upper case, the rest as it is."""
    return text[:1].upper() + text[1:]


def a(noun: str) -> str:
    """The noun with its indefinite article."""
    return f"an {noun}" if noun[:1].lower() in "aeiou" else f"a {noun}"


def plural(noun: str) -> str:
    """The regular English plural."""
    if noun.endswith(("s", "x", "ch", "sh", "z")):
        return noun + "es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


_SHORTHAND = {"you": "u", "are": "r", "please": "pls", "what": "wat", "thanks": "thx", "because": "cuz"}


def _typo(word: str, rng: Rng) -> str:
    at = rng.randrange(1, len(word) - 1)
    kind = rng.randrange(3)
    if kind == 0:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :] if at + 1 < len(word) else word
    if kind == 1:
        return word[:at] + word[at + 1 :]
    return word[:at] + word[at] + word[at:]


def casual(text: str, rng: Rng, keep: Sequence[str] = ()) -> str:
    """The text as people type it: sometimes lower case, without marks, with a slip of the finger.

    Words with a digit and those in `keep` are left alone.
    """
    draw = rng.random()
    if draw < 0.55:
        return text
    if draw < 0.85 and not keep:
        text = text.lower()
    if rng.random() < 0.6:
        text = text.rstrip("?.!")
    if rng.random() < 0.5:
        text = re.sub(r"(?<=[a-z])'(?=(s|m|re|t|ve|ll)\b)", "", text)
    if rng.random() < 0.2:
        text = text.replace(",", "")
    if rng.random() < 0.28:
        words = text.split(" ")
        at = rng.randrange(len(words))
        word = words[at]
        if word in _SHORTHAND:
            words[at] = _SHORTHAND[word]
        elif len(word) > 4 and word.isalpha() and word.islower() and word not in keep:
            words[at] = _typo(word, rng)
        text = " ".join(words)
    return text


def messages_of(exchanges: Sequence[Exchange], *, thinking: bool) -> list[dict]:
    """The OpenAI-style messages of the exchanges, reasoning kept on every assistant turn in thinking mode."""
    messages: list[dict[str, Any]] = []
    number = 0
    for exchange in exchanges:
        messages.append({"role": "user", "content": exchange.user})
        for step in exchange.steps:
            calls = []
            for call in step.calls:
                number += 1
                arguments = json.dumps(call.arguments, ensure_ascii=False)
                function = {"name": call.name, "arguments": arguments}
                calls.append({"id": f"call_{number}", "type": "function", "function": function})
            message = {"role": "assistant", "content": step.content, "tool_calls": calls}
            if thinking:
                message["reasoning_content"] = step.thought
            messages.append(message)
            for made, call in zip(calls, step.calls, strict=True):
                messages.append({"role": "tool", "tool_call_id": made["id"], "content": call.result})
        content = exchange.answer if thinking or not exchange.aloud else exchange.aloud
        message = {"role": "assistant", "content": content}
        if thinking:
            message["reasoning_content"] = exchange.thought
        messages.append(message)
    return messages


def request(
    exchanges: Sequence[Exchange],
    *,
    thinking: bool,
    system: str = "",
    tools: Sequence[dict] = (),
    effort: str = "",
) -> dict[str, Any]:
    """A chat-completion request body whose last message is the assistant's answer."""
    messages = messages_of(exchanges, thinking=thinking)
    if system:
        messages.insert(0, {"role": "system", "content": system})
    body: dict[str, Any] = {
        "messages": messages,
        "thinking": {"type": "enabled" if thinking else "disabled"},
    }
    if tools:
        body["tools"] = [{"type": "function", "function": tool} for tool in tools]
    if effort:
        body["reasoning_effort"] = effort
    return body
