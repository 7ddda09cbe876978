"""A history in memory whose clock moves on by a second each time it is asked."""

from collections.abc import Iterator
from itertools import count

import pytest

from dsv4chat.store import Repository, open_in_memory


@pytest.fixture
def history() -> Iterator[Repository]:
    repository = open_in_memory()
    ticks = count(1000)
    repository.clock = lambda: float(next(ticks))
    yield repository
    repository.close()
