"""Hyper-connections on the CuTe DSL kernels: `step_operations.Connection` in two launches."""

import torch
from torch import Tensor

from dsv4chat.kernels.cute.driver import Number, Real, address
from dsv4chat.kernels.cute.machine import Machine
from dsv4chat.kernels.step_operations import ConnectionWeights

STREAMS = 4
COLUMNS = 32
THREADS = 256
SHARED_BYTES = 256
EXTRA = 11  # shares beside the mixes: 10 products of streams and the maximum


def fits(weights: ConnectionWeights) -> bool:
    """Whether the kernels take these sizes and types."""
    return weights.streams == STREAMS and weights.norm.shape[0] % COLUMNS == 0


class Connection:
    """`step_operations.Connection` for bfloat16 streams; four streams, d a multiple of 32."""

    def __init__(self, machine: Machine, weights: ConnectionWeights) -> None:
        self.machine = machine
        self.weights = weights
        self.fn, self.scale, self.base, self.norm = (
            part.float().contiguous() for part in (weights.fn, weights.scale, weights.base, weights.norm)
        )

    def __call__(
        self,
        streams: Tensor,
        output: Tensor | None = None,
        gates: Tensor | None = None,
        peak: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        n, _, d = streams.shape
        w, mixes, blocks = self.weights, self.fn.shape[0], d // COLUMNS
        streams = streams.to(torch.bfloat16).contiguous()
        new_streams = streams if output is None else torch.empty_like(streams)
        shares = self.fn.new_empty(n, mixes + EXTRA, blocks)
        x = streams.new_empty(n, d)
        following = None if w.head else self.fn.new_empty(n, STREAMS + STREAMS * STREAMS)
        self.machine.launch(
            "connection_mix", (blocks, 1), THREADS, 0,
            [
                address(streams), address(new_streams), address(output), address(gates), address(self.fn),
                address(shares), Number(n), Number(d), Number(mixes),
            ],
        )  # fmt: skip
        self.machine.launch(
            "connection_enter", (-(-d // THREADS) + 1, n), THREADS, SHARED_BYTES,
            [
                address(new_streams), address(shares), address(self.scale), address(self.base),
                address(self.norm), address(x), address(following), address(peak),
                Number(d), Number(mixes), Number(blocks), Number(w.rounds), Real(w.norm_eps), Real(w.eps),
            ],
        )  # fmt: skip
        return new_streams, x, following
