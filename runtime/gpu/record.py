"""What the host reads of a step: one small row of numbers, copied to pinned memory by the step itself.

    [ outcome | id | log-probability | alternatives: ids, log-probabilities | |X| of each layer ]

Rows go round in a few slots, so that a step never writes the row the host is about to read.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4chat.runtime.gpu.sampler import ALTERNATIVES

SLOTS = 4


@dataclass(frozen=True, slots=True)
class Record:
    """One step's result. alternatives: (id, log-probability), most probable first, at most eight."""

    outcome: int
    id: int
    logprob: float
    alternatives: tuple[tuple[int, float], ...]
    residual: list[float]


class Records:
    """The slots, on the device and in pinned host memory."""

    def __init__(self, layers: int, device: torch.device) -> None:
        width = 3 + 2 * ALTERNATIVES + layers
        self.rows = torch.zeros(SLOTS, width, dtype=torch.float64, device=device)
        self.host = self.rows
        if device.type == "cuda":
            self.host = torch.zeros(SLOTS, width, dtype=torch.float64, pin_memory=True)

    def write(
        self, number: Tensor, outcome: Tensor, chosen: Tensor, report: Tensor, residual: Tensor
    ) -> None:
        """Part of the step: its row into slot `number` (1,) int64 modulo SLOTS, and all rows to the host."""
        row = torch.cat([outcome.double(), chosen.double(), report, residual.double()])
        self.rows.index_copy_(0, number % SLOTS, row[None])
        if self.host is not self.rows:
            self.host.copy_(self.rows, non_blocking=True)

    def read(self, number: int) -> Record:
        """The row of step `number`, which must have ended, before SLOTS - 1 later ones are launched."""
        row = self.host[number % SLOTS].tolist()
        ids, values = row[3 : 3 + ALTERNATIVES], row[3 + ALTERNATIVES : 3 + 2 * ALTERNATIVES]
        pairs = tuple(
            (int(token), value) for token, value in zip(ids, values, strict=True) if value > -torch.inf
        )
        return Record(int(row[0]), int(row[1]), row[2], pairs, row[3 + 2 * ALTERNATIVES :])
