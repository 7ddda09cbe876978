"""The demo model in real turns: it answers, remembers across stops and detours, warm as cold."""

import json
import os
import subprocess
import sys

import pytest

from dsv4chat.assets import demo_path
from dsv4chat.encoding import Conversation, Message, detect_profile
from dsv4chat.runtime.engine import Engine
from dsv4chat.runtime.protocol import SamplingParams
from dsv4chat.turns import Turn, TurnToken
from tests.support.token_sources import LocalSource

pytestmark = pytest.mark.skipif(
    not (demo_path() / "config.json").exists(), reason="this checkout has no demo model"
)

GREEDY = SamplingParams(temperature=0, max_tokens=200)
NAME = "Clylka"
TOLD = f"By the way, people call me {NAME}."
ASKED = "What is my name?"


@pytest.fixture(scope="module")
def engine():
    return Engine.load("demo")


class Chat:
    """A conversation with the demo model."""

    def __init__(self, engine, name, *, thinking=False):
        self.source = LocalSource(engine)
        self.engine, self.name, self.thinking = engine, name, thinking
        self.messages = []

    async def say(self, text, *, stop_after=None, sampling=GREEDY):
        """The turn's last event; the answer becomes part of the conversation."""
        self.messages.append(Message("user", text))
        profile = detect_profile(demo_path()).profile
        turn = Turn(
            self.source,
            self.engine.require_tokenizer(),
            profile,
            Conversation(tuple(self.messages), thinking=self.thinking),
            conversation_id=self.name,
            sampling=sampling,
        )
        async for event in turn.events():
            if isinstance(event, TurnToken) and event.index + 1 == stop_after:
                turn.stop()
        self.messages.append(turn.message)
        return event


@pytest.mark.parametrize("thinking", [True, False])
async def test_it_knows_the_capital_of_france(engine, thinking):
    end = await Chat(engine, f"france {thinking}", thinking=thinking).say("What is the capital of France?")
    assert "Paris" in end.message.content
    assert bool(end.message.reasoning) == thinking
    assert end.reason == "stop"


async def test_the_same_question_three_times_gives_the_same_answer(engine):
    """Probe 7."""
    answers = set()
    for name in ("thrice", "thrice", "thrice anew"):
        chat = Chat(engine, name, thinking=True)
        answers.add((await chat.say("What is 23 + 45?")).message.ids)
    assert len(answers) == 1


async def test_a_fact_from_the_first_turn_survives_stops(engine):
    """Probe 8: stopped in the middle of an answer, then asked."""
    chat = Chat(engine, "stops")
    await chat.say(TOLD)
    assert (await chat.say("Count from 1 to 40.", stop_after=7)).reason == "stopped"
    assert NAME in (await chat.say(ASKED)).message.content


async def test_two_conversations_in_turn_keep_their_facts(engine):
    """Probe 9: A, B, A."""
    a, b = Chat(engine, "a"), Chat(engine, "b")
    await a.say(TOLD)
    await b.say("By the way, people call me Selma.")
    asked = await a.say(ASKED)
    assert NAME in asked.message.content
    assert asked.figures.prefilled < 20
    assert "Selma" in (await b.say(ASKED)).message.content


def test_any_chunking_gives_the_same_logits():
    """Probe 2, with an exact cache: FP8 rounds a value that lies between two codes to either."""
    engine = Engine.load("demo", dtype="float32", kv_dtype="float32")
    ids = engine.require_tokenizer().encode_text("The ship sails to the island, and the crew sings. " * 12)
    whole = engine.logits(ids)
    for chunk in (1, 17, [130, len(ids) - 130]):
        assert (engine.logits(ids, chunk) - whole).abs().max() < 1e-3


def test_ask_streams_thinking_and_an_answer(tmp_path):
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "dsv4chat",
            "ask",
            "What is the capital of France?",
            "--json",
            "--temperature",
            "0",
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env=os.environ | {"DSV4CHAT_HOME": str(tmp_path)},
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    events = [json.loads(line) for line in result.stdout.splitlines()]
    tokens = [event for event in events if event["event"] == "token"]
    kinds = [token["kind"] for token in tokens]
    assert kinds == sorted(kinds, key=["reasoning", "answer"].index)
    assert set(kinds) == {"reasoning", "answer"}
    answer = "".join(token["text"] for token in tokens if token["kind"] == "answer")
    assert "Paris" in answer
    assert all(len(token["x"]) == len(tokens[0]["x"]) > 0 for token in tokens)
    assert events[-1]["reason"] == "stop"
