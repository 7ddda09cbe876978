"""Numbers as people read them, always in the same few characters."""

_UNITS = ("B", "kB", "MB", "GB", "TB")


def milliseconds(value: float) -> str:
    """A time given in ms: "0.42 ms", "12.3 ms", "148 ms", "1.25 s", "2 min 5 s"."""
    if value < 10:
        return f"{value:.2f} ms"
    if value < 100:
        return f"{value:.1f} ms"
    if value < 1000:
        return f"{value:.0f} ms"
    if value < 10_000:
        return f"{value / 1000:.2f} s"
    return seconds(value / 1000)


def seconds(value: float) -> str:
    """A time given in seconds: "0.4 s", "12 s", "2 min 5 s", "1 h 3 min"."""
    if value < 9.95:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def size(count: float) -> str:
    """Bytes in decimal units: "12 B", "8.8 MB", "411 GB"."""
    step = 0
    while count >= 999.5 and step < len(_UNITS) - 1:
        count, step = count / 1000, step + 1
    unit = _UNITS[step]
    return f"{count:.0f} {unit}" if count >= 100 or unit == "B" else f"{count:.1f} {unit}"


def short_count(count: int) -> str:
    """A count in at most five characters: "987", "12.3k", "256k", "1.05M"."""
    if count < 10_000:
        return str(count)
    if count < 100_000:
        return f"{count / 1000:.1f}k"
    if count < 1_000_000:
        return f"{count // 1000}k"
    return f"{count / 1_000_000:.2f}M"


def plural(count: int, noun: str) -> str:
    """ "1 token", "1,234 tokens"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def rate(tokens_per_second: float) -> str:
    """ "81.4 tok/s", "139 tok/s"."""
    digits = 1 if tokens_per_second < 99.95 else 0
    return f"{tokens_per_second:.{digits}f} tok/s"
