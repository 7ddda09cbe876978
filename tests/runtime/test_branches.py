"""The tree of a conversation: what parts, what is shared, where one can go to, what is given up first."""

import random

import pytest
import torch

from dsv4chat.runtime.branches import Branch, Mark, best_place, common_length, least_useful, thin
from dsv4chat.runtime.cache import CacheMark, CacheRows
from dsv4chat.runtime.errors import SavedCacheError


def state(position, size=10):
    return CacheMark(position, (torch.zeros(size, dtype=torch.uint8),))


def branch(parent, ids, marks=(), chunks=None, used=0):
    child = parent.add_child()
    child.ids, child.used = list(ids), used
    child.chunks = list(chunks or [1] * len(child.ids))
    child.marks = [Mark(position, True, state(position)) for position in marks]
    return child


@pytest.mark.parametrize(
    ("first", "second", "offset", "length"),
    [
        ([], [1], 0, 0),
        ([1, 2], [1, 2, 3], 0, 2),
        ([1, 2, 3], [1, 2], 0, 2),
        ([2, 3], [1, 2, 9], 1, 1),
        ([5], [1], 1, 0),
        ([1] * 2000, [1] * 1500 + [2], 0, 1500),
    ],
)
def test_common_length(first, second, offset, length):
    assert common_length(first, second, offset) == length


def test_common_length_is_what_comparing_one_by_one_gives():
    rng = random.Random(1)
    for _ in range(200):
        first = [rng.randrange(2) for _ in range(rng.randrange(1200))]
        second = [*([7] * rng.randrange(3)), *first]
        offset = len(second) - len(first)
        if first and rng.random() < 0.8:
            second[offset + rng.randrange(len(first))] = 9
        expected = next((i for i, a in enumerate(first) if a != second[offset + i]), len(first))
        assert common_length(first, second, offset) == expected


def test_the_place_furthest_along_the_ids_is_chosen():
    root = Branch()
    trunk = branch(root, range(10), marks=[3, 7, 10])
    a = branch(trunk, [20, 21, 22, 23], marks=[12, 14])
    b = branch(trunk, [30, 31, 32], marks=[11])
    line = list(range(10))
    for ids, limit, expected in (
        ([*line, 20, 21, 22, 23, 1], 14, (a, 14)),
        ([*line, 20, 21, 22, 9], 13, (a, 12)),
        ([*line, 30, 31, 32, 1], 13, (b, 11)),
        ([*line, 5], 10, (trunk, 10)),
        (line, 9, (trunk, 7)),
        ([*line[:5], 99, 98], 6, (trunk, 3)),
        ([99, 98], 1, (root, 0)),
    ):
        place = best_place(root, ids, limit, None)
        assert (place.branch, place.position) == expected


def test_the_live_state_is_a_place_without_a_mark_and_comes_before_its_equals():
    root = Branch()
    trunk = branch(root, [1, 2, 3], marks=[2])
    assert best_place(root, [1, 2, 3, 4], 3, None).position == 2
    assert best_place(root, [1, 2, 3, 4], 3, trunk).position == 3
    other = branch(root, [1, 2, 3], marks=[3], used=9)
    assert best_place(root, [1, 2, 3, 4], 3, None).branch is other
    assert best_place(root, [1, 2, 3, 4], 3, trunk).branch is trunk


def test_among_equals_memory_comes_before_disk_and_the_latest_before_the_rest():
    root = Branch()
    first, second = (branch(root, [1, 2], marks=[2], used=used) for used in (1, 2))
    assert best_place(root, [1, 2, 3], 2, None).branch is second
    second.marks[0].state = None
    assert best_place(root, [1, 2, 3], 2, None).branch is first


def test_a_split_keeps_every_id_chunk_mark_row_and_child_in_its_part():
    rng = random.Random(2)
    for _ in range(100):
        root = Branch()
        above = branch(root, [0] * rng.randrange(1, 300))
        chunks = [rng.randrange(1, 140) for _ in range(rng.randrange(2, 9))]
        ids = [rng.randrange(1000) for _ in range(sum(chunks))]
        ends = [above.end + sum(chunks[:n]) for n in range(1, len(chunks) + 1)]
        whole = branch(above, ids, marks=ends, chunks=chunks, used=5)
        child = branch(whole, [1])
        counts = [whole.end // r - whole.start // r for r in (4, 128)]
        tensors = tuple(torch.rand(count, 3) for count in counts)
        whole.rows = CacheRows(whole.start, whole.end, tensors, (4, 128))
        position = rng.choice(ends[:-1])
        lower = whole.split(position)
        assert whole.children == [lower]
        assert lower.children == [child]
        assert (child.parent, lower.parent, lower.used) == (lower, whole, 5)
        assert (whole.end, lower.start, lower.end) == (position, position, child.start)
        assert whole.ids + lower.ids == ids
        assert whole.chunks + lower.chunks == chunks
        assert sum(whole.chunks) == len(whole.ids)
        assert [m.position for m in whole.marks] == [p for p in ends if p <= position]
        assert [m.position for m in lower.marks] == [p for p in ends if p > position]
        for number, tensor in enumerate(tensors):
            parts = whole.rows.tensors[number], lower.rows.tensors[number]
            assert torch.equal(torch.cat(parts), tensor)
            # In memory of their own: freeing one frees something.
            assert all(part.untyped_storage().nbytes() == part.nbytes for part in parts)


def test_paths_lead_from_the_start_and_a_removed_branch_is_gone_with_all_below():
    root = Branch()
    trunk = branch(root, [1, 2])
    a, b = branch(trunk, [3]), branch(trunk, [4])
    end = branch(a, [5])
    assert end.path() == [trunk, a, end]
    assert {id(one) for one in root.walk()} == {id(one) for one in (root, trunk, a, b, end)}
    a.remove()
    assert {id(one) for one in root.walk()} == {id(one) for one in (root, trunk, b)}


def test_what_is_nowhere_says_that_it_is_fed_again():
    lost = branch(Branch(), [1])
    with pytest.raises(SavedCacheError, match="fed again"):
        lost.read_rows()
    with pytest.raises(SavedCacheError, match="fed again"):
        Mark(1, True, None).read()


def marks(*kinds):
    """A branch with marks (position, boundary)."""
    one = branch(Branch(), [0] * kinds[-1][0])
    one.marks = [Mark(position, boundary, state(position)) for position, boundary in kinds]
    return one


@pytest.mark.parametrize(
    ("kinds", "dropped"),
    [
        ([(10, True), (256, False), (300, True)], 256),
        ([(10, True), (20, True), (900, True)], 10),
        ([(100, True), (500, True), (520, True), (900, True)], 520),
        ([(256, False), (512, False), (520, False), (900, False)], 512),
        ([(5, True), (6, False)], 5),
    ],
)
def test_marks_nobody_asked_for_go_first_then_those_that_cost_least_and_the_newest_never(kinds, dropped):
    one = marks(*kinds)
    chosen = least_useful([one], one.marks[-1])
    assert chosen is not None
    assert chosen[1].position == dropped


def test_marks_that_are_on_disk_go_before_all_others_and_stay_places():
    one = marks((100, True), (200, False), (300, True), (400, True))
    one.marks[2].stored = object()
    thin(one.path()[0].parent, one.marks[-1], 35)
    assert [mark.state is None for mark in one.marks] == [False, False, True, False]
    thin(one.path()[0].parent, one.marks[-1], 25)
    assert [mark.position for mark in one.marks] == [100, 300, 400]
    thin(one.path()[0].parent, one.marks[-1], 0)
    assert [(mark.position, mark.state is None) for mark in one.marks] == [(300, True), (400, False)]
    assert least_useful([one], one.marks[-1]) is None
