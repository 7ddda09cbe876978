"""The end of a step on the CuTe DSL kernels: token, record and the next step's state in two launches."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4chat.kernels.cute.driver import Number, address
from dsv4chat.kernels.cute.machine import Machine

THREADS = 256
A_THREAD = 8
TOP = 8
MOST_BLOCKS = THREADS
SHARED_BYTES = 4 * (4 * (THREADS // 32) + 2 * TOP)


@dataclass(frozen=True)
class TurnState:
    """What a step leaves for the next.

    token, position, number, window: (1,) int64; alive: (1,) bool; history: (m,) int32; counts: (vocab,)
    int32; stops: (vocab,) bool; penalty: (1,) float64.
    """

    token: Tensor
    position: Tensor
    number: Tensor
    alive: Tensor
    history: Tensor
    counts: Tensor
    stops: Tensor
    window: Tensor
    penalty: Tensor


class Sampling:
    """Ends steps. Records are (slots, 3 + 2 * TOP + layers) float64 in memory the device can write to."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    @staticmethod
    def fits(vocab: int) -> bool:
        """Whether the kernels take a vocabulary of this size."""
        return TOP <= vocab <= MOST_BLOCKS * THREADS * A_THREAD

    def __call__(
        self, logits: Tensor, given: Tensor | None, residual: Tensor, state: TurnState, records: Tensor
    ) -> None:
        """logits: (vocab,) float32; given: (1,) int64, the token, or None: the highest penalised logit;
        residual: (layers,) float32.
        """
        vocab, layers = logits.shape[0], residual.shape[0]
        blocks = min(MOST_BLOCKS, max(self.machine.processors, -(-vocab // (THREADS * A_THREAD))))
        stretch = -(-vocab // blocks)
        maxima, sums = logits.new_empty(blocks), logits.new_empty(blocks)
        tops = logits.new_empty(blocks, 2 * TOP)
        keys = torch.empty(blocks, 4, dtype=torch.int32, device=logits.device)
        partial = [address(maxima), address(sums), address(tops), address(keys)]
        self.machine.launch(
            "sampler_scan", (blocks, 1), THREADS, SHARED_BYTES,
            [
                address(logits), address(state.counts), address(state.penalty), *partial,
                Number(vocab), Number(stretch),
            ],
        )  # fmt: skip
        self.machine.launch(
            "sampler_end", (1, 1), THREADS, SHARED_BYTES,
            [
                address(logits), address(given), *partial, address(residual), address(records),
                address(state.stops), address(state.token), address(state.position), address(state.number),
                address(state.alive), address(state.history), address(state.counts), address(state.window),
                Number(blocks), Number(layers), Number(records.shape[0]), Number(vocab),
            ],
        )  # fmt: skip
