"""What the engine's process can answer instead of a result: that it failed, or nothing because it died."""

import signal
from collections.abc import Sequence
from pathlib import Path

from dsv4chat.logs import has_name


class EngineFailed(Exception):  # noqa: N818 - the name says what happened
    """The engine refused or could not do a request; it is still there. `kind`: the error's class name."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class EngineDied(Exception):  # noqa: N818 - the name says what happened
    """The engine's process is gone. `log`: its log file; `last_lines`: the end of it."""

    def __init__(self, cause: str, log: Path, last_lines: Sequence[str] = ()) -> None:
        where = f" Its log is {log}." if has_name(log) else ""
        super().__init__(f"The engine's process ended: {cause}.{where}")
        self.cause = cause
        self.log = log
        self.last_lines = tuple(last_lines)


def describe_exit(code: int) -> str:
    """How a process ended, from its exit code; negative: the signal that ended it."""
    if code >= 0:
        return f"it exited with code {code}"
    name = signal.Signals(-code).name if -code in signal.valid_signals() else str(-code)
    hint = " (the system may have been out of memory)" if name == "SIGKILL" else ""
    return f"it was killed by {name}{hint}"
