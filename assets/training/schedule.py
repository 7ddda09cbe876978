"""What changes in the course of a run: learning rates, data mixture, sparse selection, 4-bit weights.

All of it is a function of progress in [0, 1], so that a run planned by wall clock and one planned by steps
are the same curve.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """Peak rates and the points of progress where something changes."""

    matrix_rate: float = 4e-3
    other_rate: float = 3e-3
    warmup: float = 0.02
    flat_until: float = 0.45
    last_factor: float = 0.02
    sparse_from: float = 0.80
    four_bit_from: float = 0.80
    balance_until: float = 0.90
    balance_speed: float = 1e-3
    pretraining: tuple[tuple[float, float], ...] = ((0.0, 0.40), (0.30, 0.10), (0.90, 0.05))

    def factor(self, progress: float) -> float:
        """Share of the peak rates: linear up, flat, linear down to `last_factor`."""
        if progress < self.warmup:
            return progress / self.warmup
        if progress < self.flat_until:
            return 1.0
        return 1.0 + (self.last_factor - 1.0) * (progress - self.flat_until) / (1.0 - self.flat_until)

    def rates(self, progress: float) -> tuple[float, float, float]:
        """Learning rate of matrices, of the rest, and the speed of the routers' balancing."""
        factor = self.factor(progress)
        balancing = self.balance_speed if progress < self.balance_until else 0.0
        return self.matrix_rate * factor, self.other_rate * factor, balancing

    def pretraining_share(self, progress: float) -> float:
        """Share of a batch's rows that are pretraining text: constant from each point to the next."""
        return [share for point, share in self.pretraining if progress >= point][-1]


@dataclass
class Plan:
    """Counts steps, and knows how many there will be."""

    steps: int
    done: int = 0

    @property
    def progress(self) -> float:
        """Where the next step stands, in [0, 1]."""
        return (self.done + 0.5) / max(self.steps, 1)


def steps_in(seconds: float, dense: float, sparse: float, schedule: Schedule) -> int:
    """How many steps fit into `seconds`, at `dense` and `sparse` seconds a step in the two phases."""
    average = schedule.sparse_from * dense + (1 - schedule.sparse_from) * sparse
    return max(int(seconds / average), 1)
