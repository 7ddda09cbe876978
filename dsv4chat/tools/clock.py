"""The clock: `2026-03-14 15:09:26 Saturday Europe/Paris`."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import tzlocal

from dsv4chat.tools.errors import ToolError

# Not strftime's names, which follow the locale.
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def clock(timezone: str | None = None) -> str:
    """Get the current date and time, here or in another time zone.

    Args:
        timezone: IANA name such as Europe/Paris; left out: local time
    """
    return clock_text(datetime.now(UTC), timezone)


def clock_text(moment: datetime, timezone: str | None) -> str:
    """What the clock says at `moment` (aware). ToolError for a zone that does not exist."""
    name, zone = _local() if timezone is None or not timezone.strip() else _named(timezone.strip())
    there = moment.astimezone(zone)
    return f"{there:%Y-%m-%d %H:%M:%S} {_DAYS[there.weekday()]} {name}"


def _named(name: str) -> tuple[str, tzinfo]:
    try:
        return name, ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # OSError: a folder of zones, such as "Europe"
        raise ToolError(f"unknown time zone {name[:60]}") from None


def _local() -> tuple[str, tzinfo | None]:
    try:
        name = tzlocal.get_localzone_name()
    except (OSError, ValueError, KeyError):
        name = None
    # Without a known name the system still knows how late it is.
    return (name, ZoneInfo(name)) if name else ("local time", None)
