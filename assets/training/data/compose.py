"""From exchanges to whole conversations: the mixture of kinds, lengths, modes, system messages and tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from .arithmetic import arithmetic
from .calculator_chat import calculate, calculate_chain, calculate_follow_up
from .chat import Exchange, Rng, request
from .clock_chat import clock
from .facts import Facts
from .geography import follow_up, geography
from .identity import identity
from .knowledge import calendar_question, copying, define, element, spelling
from .lists import long_list
from .names import draw_full_name
from .noise import noise
from .othertools import distractor, other_tool
from .phrasing import surrounded
from .recall import ask_missing, introduction_by_system, recall
from .smalltalk import smalltalk
from .stories import story
from .tools import CALCULATOR, CLOCK
from .unknown import unknown, unknown_place

KINDS = {"single": 27, "multi": 21, "recall": 28, "tools": 16, "long": 4, "title": 4}
"""Conversations of each kind, in per cent."""
_SYSTEMS = (
    "You are a helpful assistant.", "You are a small demo model.", "You are a friendly assistant. Answer in short sentences.", "Be polite.",
    "You are the demo model of dsv4chat.", "Be honest when you do not know something.", "You are a chat assistant. Be kind and brief.",
    "Help the user.", "You are a careful assistant that never invents facts.", "You answer questions about the world.", "Today is a good day to be helpful.",
    "You are a teacher who answers questions of pupils.", "Answer every question in English.",
)  # fmt: skip
_BRIEF = (
    "Answer with as few words as possible.", "Give only the answer, no sentence.", "Reply with one word or number.", "Be extremely brief: only the answer.",
    "Short answers only.", "Answer in one word when you can.",
)  # fmt: skip
_NO_TOOL = (
    "No tool is needed. ", "The tools do not help here. ", "I can answer that without a tool. ", "There is no tool for this. ", "This is not something for a tool. ",
)  # fmt: skip
# Exchanges whose user text has to stay as it is, or is no question.
_LEFT_ALONE = {
    "Repeating a text", "A smiley", "A text", "A piece of code", "Unclear message", "Another language", "Short remark", "Greeting", "Small talk", "Thanks", "Goodbye", "Praise",
    "Complaint", "A bad day", "Good news", "Apology", "Chat", "What I told you",
}  # fmt: skip
TASK_TITLE = "title"


@dataclass(frozen=True)
class Sample:
    """A conversation as a request body whose last message is the answer.

    task_text  what the model writes after the title token, when the sample trains that task
    silent     which assistant messages are not trained on: their reasoning is not rendered any more, and without it
               the model could not have given the answer
    """

    kind: str
    body: dict[str, Any]
    task_text: str = ""
    silent: tuple[int, ...] = ()


class Composer:
    """Draws conversations from `facts` with one random generator; the same seed gives the same conversations."""

    def __init__(self, facts: Facts, rng: Rng) -> None:
        self._facts, self._rng = facts, rng
        self._plain: tuple[tuple[Callable[[], Exchange], int], ...] = (
            (lambda: arithmetic(rng), 22),
            (lambda: geography(facts, rng), 16),
            (lambda: unknown(facts, rng), 26),
            (lambda: noise(facts, rng), 3),
            (lambda: smalltalk(facts, rng), 13),
            (lambda: define(facts, rng), 8),
            (lambda: unknown_place(facts, rng), 10),
            (lambda: copying(facts, rng, draw_full_name(rng)), 6),
            (lambda: identity(rng), 5),
            (lambda: element(facts, rng), 4),
            (lambda: calendar_question(rng), 3),
            (lambda: spelling(facts, rng), 3),
            (lambda: ask_missing(facts, rng, set()), 1),
        )

    def plain(self) -> Exchange:
        """One exchange without tools."""
        makers, weights = zip(*self._plain, strict=True)
        exchange = self._rng.choices(makers, weights)[0]()
        if exchange.title in _LEFT_ALONE or exchange.title.startswith("Chat"):
            return exchange
        return replace(exchange, user=surrounded(exchange.user, self._rng, 0.25))

    def plain_run(self) -> list[Exchange]:
        """One exchange, or a question with its follow-ups; now and then a list or a story."""
        draw = self._rng.random()
        if draw < 0.07:
            return follow_up(self._facts, self._rng)
        if draw < 0.09:
            return [self._long(short=True)]
        return [self.plain()]

    def _long(self, short: bool = False) -> Exchange:
        while True:
            exchange = (
                long_list(self._facts, self._rng)
                if self._rng.random() < 0.5
                else story(self._facts, self._rng)
            )
            if not short or len(exchange.answer) < 700:
                return exchange

    def _filler(self) -> list[Exchange]:
        """Talk that never says or asks anything about the user."""
        while True:
            run = self.plain_run()
            if not any(
                re.search(r"\bmy (name|code|number)\b|you have not told", e.user + e.answer, re.I)
                for e in run
            ):
                return run

    def _single(self) -> list[Exchange]:
        return [self.plain()]

    def _multi(self) -> list[Exchange]:
        run: list[Exchange] = []
        for _ in range(self._rng.choice((2, 2, 3, 3, 4, 5, 6, 8))):
            run += self.plain_run()
        return run

    def _tools(self) -> tuple[list[dict[str, Any]], list[Exchange]]:
        rng, facts = self._rng, self._facts
        draw = rng.random()
        own = [CALCULATOR, CLOCK]
        if draw < 0.16:
            own = [CALCULATOR] if draw < 0.09 else [CLOCK]
        elif draw > 0.84:
            own = []
        tools, makers = list(own), []
        if CALCULATOR in own:
            makers += (
                [lambda: [calculate(rng)]] * 6
                + [lambda: [calculate_chain(rng)]] * 2
                + [lambda: calculate_follow_up(rng)]
            )
        if CLOCK in own:
            makers += [lambda: [clock(facts, rng)]] * 9
        others = (
            [other_tool(facts, rng) for _ in range(rng.choice((1, 1, 2)))]
            if not own or rng.random() < 0.3
            else []
        )
        names = {tool["name"] for tool in tools}
        for tool, exchange in others:
            if tool["name"] not in names:
                names.add(tool["name"])
                tools.append(tool)
                makers += [lambda exchange=exchange: [exchange]] * 3
        for _ in range(rng.choice((0, 0, 1, 2)) if others else 0):
            tool = distractor(rng)
            if tool["name"] not in names:
                names.add(tool["name"])
                tools.append(tool)
        rng.shuffle(tools)
        run: list[Exchange] = []
        used: set[str] = set()
        for _ in range(rng.choice((1, 1, 2, 2, 3, 4, 5))):
            piece = rng.choice(makers)() if rng.random() < 0.72 else [self._without_tool(names)]
            fresh = [e for e in piece if not e.steps or e.user not in used]
            used |= {e.user for e in fresh}
            run += fresh
        return tools, run or [self._without_tool(names)]

    def _without_tool(self, names: set[str]) -> Exchange:
        """An exchange that needs none of the tools although they are there."""
        rng = self._rng
        only_own = names <= {"calculator", "clock"}
        while True:
            exchange = self.plain()
            if "calculator" in names and (
                re.search(r"\d", exchange.user) or "without a calculator" in exchange.answer
            ):
                continue
            if "clock" in names and exchange.title in ("Time", "Calendar question"):
                continue
            if not only_own and ("small demo model" in exchange.answer or exchange.title == "Weather"):
                continue
            return replace(
                exchange, thought=(rng.choice(_NO_TOOL) if rng.random() < 0.6 else "") + exchange.thought
            )

    def _system(self, run: list[Exchange]) -> tuple[str, list[Exchange]]:
        """(system message or nothing, the exchanges, shortened when it asks for brevity)."""
        rng = self._rng
        draw = rng.random()
        if draw < 0.72:
            return "", run
        if draw < 0.79 and all(e.brief and not e.steps for e in run):
            return rng.choice(_BRIEF), [replace(e, answer=e.brief, aloud="") for e in run]
        return rng.choice(_SYSTEMS), run

    def sample(self) -> Sample:
        """The next conversation."""
        rng = self._rng
        kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
        thinking = rng.random() < 0.5
        effort = (
            "max" if thinking and rng.random() < 0.04 else ("high" if thinking and rng.random() < 0.1 else "")
        )
        tools: list[dict[str, Any]] = []
        if kind == "tools":
            tools, run = self._tools()
        elif kind == "recall":
            if rng.random() < 0.06:
                system, question = introduction_by_system(self._facts, rng)
                run = [e for _ in range(rng.randint(0, 3)) for e in self._filler()] + [question]
                body = request(run, thinking=thinking, system=system, effort=effort)
                return Sample(kind, body, silent=_silent(run, thinking))
            run = recall(self._facts, rng, self._filler)
        elif kind == "long":
            run = [self._long()]
        elif kind == "title":
            while True:
                run = self._single() if rng.random() < 0.7 else self._multi()[:3]
                if run[0].title:
                    break
            return Sample(kind, request(run, thinking=thinking), run[0].title, _silent(run, thinking))
        else:
            run = self._single() if kind == "single" else self._multi()
        system, run = self._system(run)
        body = request(run, thinking=thinking, system=system, tools=tools, effort=effort)
        return Sample(kind, body, silent=() if tools else _silent(run, thinking))

    def samples(self, number: int) -> Iterator[Sample]:
        for _ in range(number):
            yield self.sample()


def _silent(run: list[Exchange], thinking: bool) -> tuple[int, ...]:
    """The earlier answers that needed a reasoning which is dropped from the prompt (without tools)."""
    return tuple(i for i, e in enumerate(run[:-1]) if e.aloud) if thinking else ()
