"""Whether a child that runs also lives: asked every second, it says how long it has been at one step.

Two ways to hang: the child answers nothing at all (stopped, swapping, stuck inside native code that keeps the
interpreter), or it answers while the work itself no longer moves (a device that hangs).
"""

from dataclasses import dataclass

from dsv4chat.runtime.protocol import Pong

BEAT_SECONDS = 1.0
SILENT_BEATS = 5
STUCK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Hang:
    """A child that does not get on. answers: whether it still answers; seconds: since when it is so."""

    answers: bool
    seconds: float


class Heartbeat:
    """Counts beats, not time: when this process itself is suspended, the child has not missed any."""

    def __init__(self) -> None:
        self._missed = 0
        self._busy = 0.0
        self.open = False

    def beat(self) -> bool:
        """To be called every `BEAT_SECONDS`; whether to ask now, which is when the last answer has come."""
        if self.open:
            self._missed += 1
            return False
        self.open = True
        return True

    def heard(self) -> None:
        """Something came from the child."""
        self._missed = 0

    def answered(self, pong: Pong) -> None:
        """The answer to what was asked in a beat."""
        self.open = False
        self._busy = (pong.busy_ms or 0.0) / 1000

    def hang(self) -> Hang | None:
        """How the child hangs, if it does."""
        if self._missed >= SILENT_BEATS:
            return Hang(answers=False, seconds=self._missed * BEAT_SECONDS)
        if self._busy >= STUCK_SECONDS:
            return Hang(answers=True, seconds=self._busy)
        return None
