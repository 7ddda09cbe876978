"""The training log: one JSON object a line in log.jsonl, and short lines on the screen."""

import json
import time
from pathlib import Path


class RunLog:
    """Writes events with the seconds since the program started."""

    def __init__(self, folder: Path, started: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.started = started
        self._file = (folder / "log.jsonl").open("w", encoding="utf-8")

    def elapsed(self) -> float:
        """Seconds since the program started."""
        return time.monotonic() - self.started

    def write(self, event: str, **values: object) -> None:
        """Record an event and show it."""
        rounded = {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in values.items()}
        line = {"event": event, "at": round(self.elapsed(), 1), **rounded}
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._file.flush()
        print(f"{line['at']:7.1f}s {event} " + " ".join(f"{k}={v}" for k, v in rounded.items()), flush=True)
