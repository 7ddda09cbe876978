"""Places that are kept, on numbers worked out by hand."""

import pytest
from textual.geometry import Region
from textual.widget import Widget

from dsv4chat.app.widgets.kept_place import KeptPlace, place_in

FIRST, SECOND, THIRD = Widget(), Widget(), Widget()
REGIONS = {FIRST: Region(0, 0, 40, 10), SECOND: Region(0, 11, 40, 30), THIRD: Region(0, 42, 40, 5)}


@pytest.mark.parametrize(
    ("above", "height", "seen"),
    [
        (0, 8, KeptPlace(FIRST, 0, 10)),
        (1, 8, KeptPlace(FIRST, -1, 10)),  # the second begins just below the view
        (4, 8, KeptPlace(SECOND, 7, 30)),
        (20, 8, KeptPlace(SECOND, -9, 30)),
        (40, 8, KeptPlace(THIRD, 2, 5)),
        (46, 8, KeptPlace(THIRD, -4, 5)),
        (60, 8, None),
    ],
)
def test_the_first_message_that_begins_in_sight_or_fills_the_view(
    above: int, height: int, seen: KeptPlace | None
) -> None:
    assert place_in(REGIONS, above, height) == seen


def test_one_that_begins_in_sight_begins_there_again() -> None:
    place = KeptPlace(SECOND, 7, 30)
    for grows_above in (True, False):
        assert place.moved(Region(0, 16, 40, 34), 4, grows_above=grows_above) == 5
        assert place.moved(Region(0, 6, 40, 20), 4, grows_above=grows_above) == -5


def test_of_one_that_fills_the_view_its_end_or_the_same_part_is_there_again() -> None:
    place = KeptPlace(SECOND, -9, 30)
    # Its thinking, six rows, unfolds above what is read: its end, 21 rows below the edge, is there again.
    assert place.moved(Region(0, 11, 40, 36), 20, grows_above=True) == 6
    # A third of it was above the edge (9 of 30 rows); in half the width 18 of 60 are.
    assert place.moved(Region(0, 11, 20, 60), 20, grows_above=False) == 9
