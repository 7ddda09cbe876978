"""Hyper-connections on a CuTe DSL kernel: `step_operations.Connection` in one launch of clusters."""

import torch
from torch import Tensor

from dsv4chat.kernels.cute.driver import Number, Real, address
from dsv4chat.kernels.cute.machine import Machine
from dsv4chat.kernels.step_operations import ConnectionWeights

STREAMS = 4
PARTS = 16
COLUMNS = 448
THREADS = COLUMNS + 32
WARPS = THREADS // 32
SHARED_BYTES = 16 + 4 * ((WARPS + PARTS + 2) * 36 + 28 + 20)


def fits(weights: ConnectionWeights) -> bool:
    """Whether the kernels take these sizes and types."""
    d = weights.norm.shape[0]
    return weights.streams == STREAMS and d % PARTS == 0 and d <= PARTS * COLUMNS


class Connection:
    """`step_operations.Connection` for bfloat16 streams; four streams, d a multiple of 16 up to 7,168.

    The sublayer's output may come in two parts of n rows, one behind the other, to be added up (`adds`). Of
    the gates it gives for the next call the last 16 are the logits of comb: Sinkhorn is that call's.
    """

    adds = True

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
        settled: bool = False,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        n, _, d = streams.shape
        w = self.weights
        streams = streams.to(torch.bfloat16).contiguous()
        new_streams = streams if output is None else torch.empty_like(streams)
        x = streams.new_empty(n, d)
        second = None if output is None or output.shape[0] == n else output[n:]
        following = None if w.head else self.fn.new_empty(n, STREAMS + STREAMS * STREAMS)
        self.machine.launch(
            "connection", (PARTS, n), THREADS, SHARED_BYTES,
            [
                address(streams), address(new_streams), address(output), address(gates), address(self.fn),
                address(self.scale), address(self.base), address(self.norm), address(x), address(following),
                address(peak), address(second), Number(d), Number(self.fn.shape[0]), Number(w.rounds),
                Number(settled), Real(w.norm_eps), Real(w.eps),
            ],
            cluster=PARTS,
        )  # fmt: skip
        return new_streams, x, following
