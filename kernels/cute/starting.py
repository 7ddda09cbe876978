"""The beginning of a step on a CuTe DSL kernel: `step_start.Start` in one launch."""

import torch
from torch import Tensor

from dsv4chat.kernels.cute.driver import Number, address
from dsv4chat.kernels.cute.machine import Machine
from dsv4chat.kernels.step_start import Begun, StartWeights

STREAMS = 4
THREADS = 128
PAIRS = 32
A_THREAD = 8
RATIOS = 2


def fits(weights: StartWeights) -> bool:
    """Whether the kernel takes these sizes and types."""
    return (
        weights.embedding.dtype == torch.bfloat16
        and weights.embedding.is_contiguous()
        and weights.embedding.shape[1] % A_THREAD == 0
        and weights.streams == STREAMS
        and weights.plain.shape[0] == PAIRS
        and len(weights.ratios) <= RATIOS
    )


class Start:
    """`step_start.Start` for a bfloat16 embedding, four streams, 32 pairs and two ratios."""

    def __init__(self, machine: Machine, weights: StartWeights) -> None:
        self.machine, self.weights = machine, weights
        self.plain, self.compressed = (
            part.float().contiguous() for part in (weights.plain, weights.compressed)
        )

    def __call__(self, token: Tensor, position: Tensor) -> Begun:
        w, d = self.weights, self.weights.embedding.shape[1]
        streams = w.embedding.new_empty(1, STREAMS, d)
        tables = torch.empty(2 + RATIOS, 1, PAIRS, dtype=torch.complex64, device=streams.device)
        ratios = [*w.ratios, *[1] * (RATIOS - len(w.ratios))]
        self.machine.launch(
            "start", (-(-d // (THREADS * A_THREAD)) + 1, 1), THREADS, 0,
            [
                address(w.embedding), address(token), address(position), address(self.plain),
                address(self.compressed), address(streams), address(tables), Number(d),
                *(Number(ratio) for ratio in ratios),
            ],
        )  # fmt: skip
        return Begun(streams, tables[0], tables[1], dict(zip(w.ratios, tables[2:], strict=False)))
