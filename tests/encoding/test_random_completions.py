"""Random completions: the same events however they are cut, and DeepSeek's message where both are meant to
agree.

The two parsers differ on purpose: ours ends at a written-out end-of-sentence token, keeps text after a
block of calls and further blocks, checks JSON values, and gives a malformed call as an invalid one. Such
texts are not compared.
"""

import random
from collections.abc import Sequence

import pytest

from dsv4chat.encoding import CompletionParser, Event, Message
from dsv4chat.encoding.events import joined
from tests.support import deepseek
from tests.support.random_completions import Completion, random_completion

TOOLS = [{"name": "f", "parameters": {"properties": {"city": {}}}}, {"name": "get_weather"}]

PREFIXES = {
    "reasoning": Message("assistant", "", reasoning="so far", prefix=True),
    "answer": Message("assistant", "so far", reasoning="r", prefix=True),
}


def events(pieces: Sequence[str], thinking: bool, tools: bool) -> list[Event]:
    parser = CompletionParser(thinking, tools=TOOLS if tools else None)
    seen = [event for piece in pieces for event in parser.push(piece)]
    return joined(seen + parser.finish())


def check_cuts(completion: Completion, every: int = 1) -> None:
    text, thinking = completion.text, completion.thinking
    for tools in (False, True):
        whole = events([text], thinking, tools)
        assert events(list(text), thinking, tools) == whole, repr(text)
    for cut in range(1, len(text), every):
        assert events([text[:cut], text[cut:]], thinking, True) == whole, f"cut at {cut}: {text!r}"


def check_message(completion: Completion, rng: random.Random) -> None:
    text = completion.text
    cut = rng.randint(0, len(text))
    continued = rng.choice([None, None, *PREFIXES]) if completion.thinking else None
    theirs, reason = deepseek.message([text[:cut], text[cut:]], completion.thinking, prefix=continued)
    parser = CompletionParser(completion.thinking, prefix=PREFIXES[continued] if continued else None)
    parser.push(text)
    parser.finish()
    ours = parser.message()
    calls = [(call.name, call.arguments) for call in ours.tool_calls]
    expected = [(c["function"]["name"], c["function"]["arguments"]) for c in theirs.get("tool_calls", [])]
    said = (ours.reasoning or "", ours.content)
    assert said == (theirs.get("reasoning_content") or "", theirs["content"]), repr(text)
    assert calls == expected, repr(text)
    assert parser.finish_reason == reason, repr(text)
    assert all(call.valid for call in ours.tool_calls), repr(text)


def test_a_sample_of_completions_gives_the_same_events_however_cut() -> None:
    for seed in range(80):
        check_cuts(random_completion(random.Random(seed)), every=3)


def test_a_sample_of_completions_gives_deepseeks_message() -> None:
    check_many_messages(range(200))


@pytest.mark.soak
def test_700_completions_give_the_same_events_cut_at_every_position() -> None:
    for seed in range(1000, 1700):
        check_cuts(random_completion(random.Random(seed)))
    print("700 random completions: same events whole, in single characters, and cut at every position")


@pytest.mark.soak
def test_many_completions_give_deepseeks_message() -> None:
    checked = check_many_messages(range(10_000, 16_000))
    assert checked >= 2500
    print(f"{checked} random completions give deepseek-recipe's message")


def check_many_messages(seeds: range) -> int:
    checked = 0
    for seed in seeds:
        rng = random.Random(seed)
        completion = random_completion(rng)
        if completion.comparable:
            check_message(completion, rng)
            checked += 1
    return checked
