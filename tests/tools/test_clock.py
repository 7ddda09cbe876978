"""The clock at known moments."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from dsv4chat.tools import ToolError
from dsv4chat.tools.clock import clock, clock_text

MOMENT = datetime(2026, 5, 2, 5, 13, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "said"),
    [
        ("Europe/Paris", "2026-05-02 07:13:30 Saturday Europe/Paris"),
        ("Asia/Kolkata", "2026-05-02 10:43:30 Saturday Asia/Kolkata"),
        ("America/Los_Angeles", "2026-05-01 22:13:30 Friday America/Los_Angeles"),
        ("UTC", "2026-05-02 05:13:30 Saturday UTC"),
        (" Europe/Paris ", "2026-05-02 07:13:30 Saturday Europe/Paris"),
    ],
)
def test_it_says_the_time_of_a_zone(zone: str, said: str) -> None:
    assert clock_text(MOMENT, zone) == said


@pytest.mark.parametrize("zone", ["Mars", "Europe", "../../etc/passwd", "\0", "x" * 5000, "europe/nowhere"])
def test_an_unknown_zone_is_said(zone: str) -> None:
    with pytest.raises(ToolError, match="unknown time zone"):
        clock_text(MOMENT, zone)


@pytest.mark.parametrize("left_out", [None, ""])
def test_left_out_it_is_the_local_time(monkeypatch: pytest.MonkeyPatch, left_out: str | None) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert clock_text(MOMENT, left_out) == "2026-05-02 14:13:30 Saturday Asia/Tokyo"


def test_it_is_now() -> None:
    match = re.fullmatch(r"(\S+ \S+) \w+day UTC", clock("UTC"))
    assert match
    said = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    assert abs(datetime.now(UTC) - said) < timedelta(seconds=5)
