"""What is exported and imported again is the same: all of it in JSON, the shown branch in Markdown."""

import json
import math
import random
import struct
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest

from dsv4chat.encoding import ToolCall
from dsv4chat.exchange import (
    ExchangeError,
    WholeConversation,
    read_conversations,
    write_json,
    write_markdown,
)
from dsv4chat.runtime.protocol import Alternative
from dsv4chat.store import (
    ConversationSettings,
    GenerationRecord,
    Repository,
    TokenFigures,
    open_in_memory,
)
from tests.support.random_chats import random_text

STATES = ("complete", "stopped", "interrupted", "length", "failed")
NASTY = (
    "<!-- mark0 end -->",
    "\n\n<!-- mark1 content -->\n\n",
    "## User\n",
    "</details>",
    "\r\n",
    "\r",
    "```json\n",
    "-->",
    "\n\n",
    " ",
    "\x1b[2J",
    "\x00",
    "\ufeff",
    "\u2028",
)


@pytest.fixture
def history() -> Iterator[Repository]:
    repository = open_in_memory()
    ticks = count(1000)
    repository.clock = lambda: next(ticks) + 0.25
    yield repository
    repository.close()


def text(rng: random.Random) -> str:
    return "".join(
        rng.choice(NASTY) if rng.random() < 0.3 else random_text(rng, 3) for _ in range(rng.randint(0, 6))
    )


def single(value: float) -> float:
    """The nearest float32."""
    found: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return found


def random_conversation(history: Repository, rng: random.Random) -> int:
    settings = ConversationSettings(
        text(rng), rng.random() < 0.5, rng.choice((None, "max")), {"seed": 2**63}, [{"name": "clock"}]
    )
    talk = history.create_conversation(settings).id
    history.rename(talk, text(rng) or "T", rng.choice(("person", "model", "text")))
    ids: list[int] = []
    for _ in range(rng.randint(1, 12)):
        parent = rng.choice(ids) if ids and rng.random() < 0.9 else None
        role = rng.choice(("user", "assistant", "tool"))
        if role != "assistant" or parent is None:
            ids.append(history.add_message(talk, parent, role, text(rng), tool_call_id=text(rng) or None).id)
            continue
        calls = [
            ToolCall(f"c{i}", text(rng), text(rng), rng.random() < 0.5, text(rng) or None)
            for i in range(rng.randint(0, 2))
        ]
        made = GenerationRecord("demo", "abc", "preview", 3, {"temperature": 0.3}, tokens=5, ttft_ms=0.1)
        answer = history.begin_answer(talk, parent, made, thinking=True, effort=rng.choice((None, "low"))).id
        figures = TokenFigures()
        for number in range(rng.randint(0, 6)):
            figures.add(
                rng.randrange(2**32),
                rng.choice(("reasoning", "answer", "tool")),
                rng.lognormvariate(2, 1),
                -rng.expovariate(1.0) if number % 5 else -math.inf,
                [rng.lognormvariate(0, 6) for _ in range(3)],
                [Alternative(id=number, text=text(rng), logprob=-0.5)] if rng.random() < 0.5 else [],
            )
        thought = text(rng) if rng.random() < 0.7 else None
        state, error = rng.choice(STATES), text(rng) or None
        history.finish_answer(
            answer, state, text(rng), thought, 0, figures, made, tool_calls=calls, error=error
        )
        if calls:
            history.decide_call(answer, 0, rng.choice(("once", "always", "never")))
        ids.append(answer)
    history.activate(talk, rng.choice(ids))
    return talk


def renumbered(whole: WholeConversation) -> tuple[object, ...]:
    """All there is of a conversation, with numbers that begin at 0 for every copy of it."""
    new = {message.id: number for number, message in enumerate(whole.messages)}
    record = replace(whole.record, id=0, active_leaf=new[whole.record.active_leaf or -1])
    messages = [
        replace(m, id=new[m.id], conversation=0, parent=None if m.parent is None else new[m.parent])
        for m in whole.messages
    ]
    return record, messages, {new[number]: figures for number, figures in whole.figures.items()}


@pytest.mark.parametrize("seed", range(25))
def test_json_loses_nothing_of_branches_settings_calls_and_figures(history: Repository, seed: int) -> None:
    rng = random.Random(seed)
    numbers = [random_conversation(history, rng) for _ in range(2)]
    wholes = [WholeConversation.of(history, number) for number in numbers]
    for many, taken in ((True, wholes), (False, wholes[:1])):
        raw = b"".join(write_json(taken, many=many))
        assert isinstance(json.loads(raw), list) == many
        read = read_conversations(raw, 0.0)
        again = [WholeConversation.of(history, whole.add_to(history)) for whole in read]
        assert list(map(renumbered, again)) == list(map(renumbered, taken))


@pytest.mark.parametrize("seed", range(25))
def test_markdown_brings_every_text_of_the_shown_branch_back_exactly(history: Repository, seed: int) -> None:
    whole = WholeConversation.of(history, random_conversation(history, random.Random(seed)))
    (read,) = read_conversations(write_markdown(whole), 0.0)
    again = WholeConversation.of(history, read.add_to(history))
    shown = replace(whole, messages=[replace(m, ids=()) for m in whole.active_path()], figures={})
    assert renumbered(again) == renumbered(shown)


def test_markdown_can_be_read_by_a_person(history: Repository) -> None:
    talk = history.create_conversation(ConversationSettings("Be brief.")).id
    history.rename(talk, "Capitals")
    question = history.add_message(talk, None, "user", "Capital of France?")
    history.add_message(talk, question.id, "assistant", "**Paris.**", reasoning="Easy.")
    lines = write_markdown(WholeConversation.of(history, talk)).decode().split("\n")
    seen = [line for line in lines if line and not line.startswith("<!--")]
    assert seen == [
        "# Capitals",
        "> Be brief.",
        "## User",
        "Capital of France?",
        "## Assistant",
        "<details><summary>Thinking</summary>",
        "Easy.",
        "</details>",
        "**Paris.**",
    ]


def test_a_text_changed_in_the_markdown_is_imported_as_it_stands(history: Repository) -> None:
    talk = history.create_conversation(ConversationSettings()).id
    history.add_message(talk, None, "user", "Capital of France?")
    raw = write_markdown(WholeConversation.of(history, talk)).replace(b"France", b"Italy")
    (read,) = read_conversations(raw, 0.0)
    assert [message.content for message in read.messages] == ["Capital of Italy?"]


def test_figures_survive_as_they_stand_in_the_history(history: Repository) -> None:
    talk = history.create_conversation(ConversationSettings()).id
    user = history.add_message(talk, None, "user", "q").id
    made = GenerationRecord("demo", "abc", "preview", 2)
    answer = history.begin_answer(talk, user, made, thinking=True, effort=None).id
    figures = TokenFigures()
    figures.add(5, "answer", 1 / 3, -2 / 3, [1e-7 / 3, 3.4e38 / 3])
    history.finish_answer(answer, "complete", "a", None, 0, figures, made)
    raw = b"".join(write_json([WholeConversation.of(history, talk)], many=False))
    tokens = json.loads(raw)["messages"][1]["tokens"]
    assert single(tokens["milliseconds"][0]) == single(1 / 3)
    assert single(tokens["logprobs"][0]) == single(-2 / 3)
    assert all(
        abs(a - b) <= b / 200 for a, b in zip(tokens["residual"][0], [1e-7 / 3, 3.4e38 / 3], strict=True)
    )
    (read,) = read_conversations(raw, 0.0)
    assert history.figures(history.whole(read.add_to(history))[1][1].id) == history.figures(answer)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"version": 2}, "format 2"),
        ({"messages": [{"id": 1, "parent": 7, "role": "user"}]}, "before its parent"),
        ({"messages": [{"id": 1, "parent": None, "role": "user"}] * 2}, "twice"),
        ({"messages": [{"id": 1, "parent": None, "role": "robot"}]}, r"messages\[0\].role"),
        ({"messages": [{"id": 1, "parent": None, "role": "user", "content": 5}]}, r"messages\[0\].content"),
        ({"messages": 3}, "messages"),
        ({"title_by": "nobody"}, "title_by"),
        (
            {
                "messages": [
                    {
                        "id": 1,
                        "parent": None,
                        "role": "assistant",
                        "tokens": {"ids": [1, 2], "kinds": "a", "milliseconds": [1], "logprobs": [1]},
                    }
                ]
            },
            "do not fit together",
        ),
    ],
)
def test_json_that_cannot_be_used_is_refused_with_the_place(change: dict[str, object], sentence: str) -> None:
    good = {"format": "dsv4chat.conversation", "version": 1, "messages": []}
    assert read_conversations(json.dumps(good).encode(), 0.0)[0].messages == []
    with pytest.raises(ExchangeError, match=sentence):
        read_conversations(json.dumps(good | change).encode(), 0.0)


def test_markdown_that_was_cut_or_is_of_others_is_refused(history: Repository) -> None:
    talk = history.create_conversation(ConversationSettings()).id
    history.add_message(talk, None, "user", "text")
    raw = write_markdown(WholeConversation.of(history, talk))
    with pytest.raises(ExchangeError, match="end of the exported conversation is missing"):
        read_conversations(raw[: len(raw) // 2 + 200], 0.0)
    with pytest.raises(ExchangeError, match="neither JSON nor Markdown"):
        read_conversations(b"# A letter\n\nDear all,\n", 0.0)
    with pytest.raises(ExchangeError, match="role"):
        read_conversations(raw.replace(b'"role":"user"', b'"role":"robot"'), 0.0)
    with pytest.raises(ExchangeError, match="not JSON"):
        read_conversations(raw.replace(b'"role":"user"', b'"role:"user"'), 0.0)
