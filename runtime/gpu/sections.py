"""Where a step's time goes: marks between its operations, which cost nothing unless somebody measures."""

import torch


class Sections:
    """Does nothing when told that an operation ended."""

    def begin(self) -> None:
        """The step begins."""

    def end(self, name: str) -> None:
        """Everything since the last mark was `name`."""


class TimedSections(Sections):
    """Records an event at each mark, in a graph too: one on the device's clock each time it is replayed."""

    def __init__(self) -> None:
        self._marks: list[tuple[str, torch.cuda.Event]] = []

    def begin(self) -> None:
        self._start = self._event()

    def _event(self) -> torch.cuda.Event:
        event: torch.cuda.Event = torch.cuda.Event(  # type: ignore[no-untyped-call]
            enable_timing=True, external=True
        )
        event.record()
        return event

    def end(self, name: str) -> None:
        self._marks.append((name, self._event()))

    def milliseconds(self) -> dict[str, float]:
        """Time of each operation in the last replay, in order of appearance, summed over the layers."""
        times: dict[str, float] = {}
        before = self._start
        for name, event in self._marks:
            times[name] = times.get(name, 0.0) + before.elapsed_time(event)
            before = event
        return times
