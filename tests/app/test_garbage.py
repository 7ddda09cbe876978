"""When Python looks for garbage."""

import gc
from collections.abc import Iterator

import pytest

from dsv4chat.app import garbage


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.enable()
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def test_none_is_looked_for_before_the_first_paint_and_what_was_made_is_left_alone() -> None:
    garbage.put_off()
    assert not gc.isenabled()
    garbage.begin()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0


def test_where_it_was_not_put_off_nothing_is_changed() -> None:
    gc.unfreeze()
    garbage.begin()
    assert gc.get_freeze_count() == 0


def test_once_settled_cycles_are_looked_for_when_it_was_quiet_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [100.0]
    monkeypatch.setattr(garbage, "now", lambda: clock[0])
    looks: list[float] = []
    monkeypatch.setattr(garbage.gc, "collect", lambda: looks.append(clock[0]))
    cycles = garbage.Garbage()
    cycles.busy(made=True)
    cycles.look()
    assert looks == []  # not settled: Python's own thresholds hold
    cycles.settle()
    cycles.look()
    assert looks == []
    clock[0] += garbage.QUIET
    cycles.look()
    cycles.look()
    assert looks == [103.0]
    cycles.busy()  # a key: nothing that could be garbage
    clock[0] += garbage.QUIET
    cycles.look()
    assert looks == [103.0]
