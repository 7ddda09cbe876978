"""Whatever a person does, and whatever happens to the engine: exact, and no turn feeds more than it must.

Random programs of turns, stops, edits, other answers, branches, other conversations, changes of mode, saves,
evictions, deaths and damaged files. After each step the logits are compared bit for bit with a fresh cache
that was fed the same ids in the same chunks, and the ids fed with a bound from the messages alone.
"""

import functools
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from dsv4chat.runtime import Engine
from tests.support.engines import save_random
from tests.support.warm_chats import WarmChats

STEPS = 10
LENGTHS = st.sampled_from([1, 4, 12, 30, 31, 70, 130, 300, 560])
MOST = st.sampled_from([0, 1, 2, 5, 12])
STOPS = st.sampled_from([None, None, None, 0, 1, 2, 4, 7])
MODES = st.fixed_dictionaries(
    {"thinking": st.booleans(), "tools": st.booleans(), "effort": st.sampled_from([None, "high", "max"])}
)


@functools.cache
def loaded(kv_dtype):
    """A tiny model with every kind of layer; the folder goes when it has been read."""
    with tempfile.TemporaryDirectory() as folder:
        path = save_random(
            Path(folder), (0, 4, 128), text=True, hidden_size=32, hash_layers=1, index_heads=4, hc_mult=2
        )
        return Engine.load(path, device="cpu", kv_dtype=kv_dtype, max_context=20_000)


class Programs(RuleBasedStateMachine):
    """One program: what a person does and what happens, in any order."""

    @initialize(
        seed=st.integers(0, 2**32),
        kv_dtype=st.sampled_from(["fp8", "float32"]),
        limited=st.sampled_from([False, False, False, True]),
        mode=MODES,
    )
    def begin(self, seed, kv_dtype, limited, mode):
        self.folder = Path(tempfile.mkdtemp())
        self.chats = WarmChats(loaded(kv_dtype), self.folder, seed, limited=limited)
        self.chats.configure(**mode)

    @rule(length=LENGTHS, stop_after=STOPS, most=MOST)
    def say(self, length, stop_after, most):
        self.chats.say(length, stop_after=stop_after, most=most)

    @rule(length=LENGTHS, most=MOST)
    def say_more(self, length, most):
        self.chats.say(length, stop_after=None, most=most)

    @rule(stop_after=STOPS, most=MOST)
    def answer_again(self, stop_after, most):
        self.chats.again(stop_after=stop_after, most=most)

    @rule(most=MOST)
    def continue_the_answer(self, most):
        self.chats.go_on(most=most)

    @rule(number=st.integers(0, 9), length=LENGTHS, most=MOST)
    def edit(self, number, length, most):
        self.chats.edit(number, length, most=most)

    @rule(number=st.integers(0, 9))
    def branch_back(self, number):
        self.chats.recall(number)

    @rule(number=st.integers(0, 3))
    def switch(self, number):
        self.chats.switch(number)
        self.chats.probe()

    @rule(mode=MODES)
    def configure(self, mode):
        self.chats.configure(**mode)
        self.chats.probe()

    @rule()
    def save(self):
        self.chats.save()

    @rule()
    def evict(self):
        self.chats.evict()

    @rule(resume=st.booleans())
    def kill(self, resume):
        self.chats.kill(resume=resume)

    @rule()
    def damage(self):
        self.chats.damage()

    def teardown(self):
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder, ignore_errors=True)


def run(programs, **options):
    run_state_machine_as_test(
        Programs,
        settings=settings(
            max_examples=programs,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            **options,
        ),
    )


def test_any_program_is_exact_and_feeds_only_what_is_new():
    run(30, derandomize=True)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_soak_a_thousand_programs_are_exact_and_feed_only_what_is_new():
    run(1000)
    print("1,000 programs: every logit bitwise equal, every prefill within its bound")
