"""Keys as the settings name them and as people read them."""

import pytest
from textual.binding import Binding

from dsv4chat.app.keys import bindings, complaints, keys_of, usable, written

OWN = {
    "new": Binding("ctrl+n", "new", "New", id="new"),
    "end": Binding("end,ctrl+end", "end", "End", id="end"),
    "up": Binding("up,k", "up", "Up", id="up"),
}


@pytest.mark.parametrize(
    ("key", "shown"),
    [("ctrl+n", "Ctrl+N"), ("pageup", "Page up"), ("f3", "F3"), ("shift+tab", "Shift+Tab"), ("k", "K")],
)
def test_keys_are_written_as_people_read_them(key: str, shown: str) -> None:
    assert written(key) == shown


def test_changed_keys_come_before_the_own_ones() -> None:
    assert keys_of("end", OWN, {}) == "End, Ctrl+End"
    assert keys_of("end", OWN, {"end": "f9"}) == "F9"
    assert keys_of("gone", OWN, {}) == ""


def test_what_is_wrong_with_changed_keys_is_told() -> None:
    assert complaints({}, OWN) == []
    assert complaints({"new": "f9"}, OWN) == []
    (unknown,) = complaints({"nwe": "f9"}, OWN)
    assert "nwe" in unknown
    assert "end, new, up" in unknown
    assert complaints({"new": "f9,k"}, OWN) == ["The settings give K to new; it is also for up."]
    assert complaints({"new": " , "}, OWN) == ["The settings give no key to new; it keeps Ctrl+N."]


def test_empty_keys_are_none() -> None:
    assert usable({"new": "", "end": ",,", "up": " j , ,k"}) == {"up": "j,k"}
    assert keys_of("new", OWN, usable({"new": ",,"})) == "Ctrl+N"


def test_bindings_are_found_by_their_names() -> None:
    class Owner:
        BINDINGS = (OWN["new"], Binding("x", "x", "X"), ("y", "y", "Y"), OWN["up"])

    assert bindings(Owner) == {"new": OWN["new"], "up": OWN["up"]}  # type: ignore[arg-type]
