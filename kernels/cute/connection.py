"""Hyper-connections on a CuTe DSL kernel: `step_operations.Connection` in one launch of clusters."""

import torch
from torch import Tensor

from dsv4chat.kernels.cute.driver import Number, Real, address
from dsv4chat.kernels.cute.machine import Machine
from dsv4chat.kernels.step_operations import ConnectionWeights

STREAMS = 4
PARTS = 16
COLUMNS = 448
THREADS = COLUMNS + 32  # at most
GATES_BYTES = 4 * (STREAMS + STREAMS * STREAMS)
SHARED_BYTES = 4848  # and fn's


def fits(weights: ConnectionWeights) -> bool:
    """Whether the kernels take these sizes and types."""
    d = weights.norm.shape[0]
    return weights.streams == STREAMS and d % (4 * PARTS) == 0 and d <= PARTS * COLUMNS


class Connection:
    """`step_operations.Connection` for bfloat16 streams; four streams, d a multiple of 64 up to 7,168.

    The sublayer's output may come in two parts of n rows, one behind the other, to be added up (`adds`). Of
    the gates it gives for the next call the last 16 are the logits of comb: Sinkhorn is that call's.
    """

    adds = True

    def __init__(self, machine: Machine, weights: ConnectionWeights) -> None:
        self.machine = machine
        self.weights = weights
        # What a block of the cluster takes of fn lies in one piece: 1 to 3 MB of memory for a microsecond.
        # All of it one behind the other, to be fetched ahead as one.
        self.mixes = weights.fn.shape[0]
        fn = weights.fn.reshape(self.mixes * STREAMS, PARTS, -1).transpose(0, 1)
        parts = [fn, weights.norm, weights.base, weights.scale]
        self.ahead = [torch.cat([part.float().flatten() for part in parts])]
        pieces = torch.split(self.ahead[0], [part.numel() for part in parts])
        self.fn, self.norm, self.base, self.scale = pieces

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
        x = streams.new_empty(n, d)
        second = None if output is None or output.shape[0] == n else output[n:]
        # Streams and gates one behind the other, for the same reason.
        size = 0 if output is None else streams.nbytes
        room = torch.empty(size + n * GATES_BYTES, dtype=torch.uint8, device=streams.device)
        new_streams = streams if output is None else room[:size].view(torch.bfloat16).view(streams.shape)
        following = None if w.head else room[size:].view(torch.float32).view(n, -1)
        columns = d // PARTS
        threads = -(-columns // 32) * 32 + 32
        shared = SHARED_BYTES + self.fn.nbytes // PARTS
        self.machine.launch(
            "connection", (PARTS, n), threads, shared,
            [
                address(streams), address(new_streams), address(output), address(gates), address(self.fn),
                address(self.scale), address(self.base), address(self.norm), address(x), address(following),
                address(peak), address(second), Number(d), Number(self.mixes), Number(w.rounds),
                Number(settled), Real(w.norm_eps), Real(w.eps),
            ],
            cluster=PARTS,
        )  # fmt: skip
        return new_streams, x, following
