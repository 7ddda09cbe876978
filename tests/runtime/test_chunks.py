"""How a turn's ids are cut into chunks."""

import random
from itertools import pairwise

import pytest

from dsv4chat.runtime.chunks import chunk_sizes, cut
from dsv4chat.runtime.errors import EngineError


@pytest.mark.parametrize(
    ("start", "end", "boundaries", "step", "cuts"),
    [
        (0, 5, [], 256, [5]),
        (0, 5, [4], 256, [4, 5]),
        (0, 300, [], 256, [256, 300]),
        (0, 256, [], 256, [256]),
        (200, 600, [200, 210, 599, 600, 700], 256, [210, 256, 512, 599, 600]),
        (256, 257, [256], 256, [257]),
        (7, 7, [3], 4, []),
        (3, 12, [5], 4, [4, 5, 8, 12]),
    ],
)
def test_chunks_end_at_boundaries_and_multiples_of_the_step(start, end, boundaries, step, cuts):
    assert cut(start, end, boundaries, step) == cuts


def test_a_cut_of_any_range_covers_it_in_steps_of_at_most_the_limit():
    rng = random.Random(1)
    for _ in range(300):
        start = rng.randrange(1000)
        end = start + rng.randrange(1, 1000)
        boundaries = [rng.randrange(2100) for _ in range(rng.randrange(6))]
        edges = [start, *cut(start, end, boundaries, 128)]
        assert edges[-1] == end
        assert all(0 < b - a <= 128 for a, b in pairwise(edges))
        assert {b for b in boundaries if start < b < end} <= set(edges)


def test_a_step_below_one_is_refused():
    with pytest.raises(EngineError, match="1 or more"):
        cut(0, 5, [], 0)


@pytest.mark.parametrize(
    ("start", "end", "boundaries", "sizes", "few_alone"),
    [
        (0, 261, [260], [256, 4, 1], [256, 1, 1, 1, 1, 1]),
        (255, 262, [261], [1, 5, 1], [1, 5, 1]),
        (7, 7, [], [], []),
    ],
)
def test_up_to_four_ids_are_fed_one_by_one_where_that_is_asked_for(start, end, boundaries, sizes, few_alone):
    assert chunk_sizes(start, end, boundaries, 256) == sizes
    assert chunk_sizes(start, end, boundaries, 256, few_alone=True) == few_alone
