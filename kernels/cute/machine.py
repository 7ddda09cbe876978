"""The GPU at hand, and the kernels loaded on it."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from dsv4chat.kernels.cute.catalogue import architecture
from dsv4chat.kernels.cute.driver import Kernel, load
from dsv4chat.kernels.cute.store import Build

# What a block costs beside the shared memory it asks for.
_RESERVED_SHARED = 1024
SPREAD = "sm_90a"


class Machine:
    """One CUDA device and a build of the kernels for it.

    programmatic: whether a kernel may start while the one before it drains.
    """

    def __init__(self, device: torch.device, build: Build, programmatic: bool = True) -> None:
        torch.zeros(1, device=device)  # makes the device's context current, which the driver asks for
        properties = torch.cuda.get_device_properties(device)
        self.device = device
        self.build = build
        self.programmatic = programmatic
        self.processors = properties.multi_processor_count
        self.shared_total: int = properties.shared_memory_per_multiprocessor
        self.shared_most: int = properties.shared_memory_per_block_optin  # type: ignore[attr-defined]
        # Whether NVFP4 codes are wanted in the order of `kernels.spread`.
        self.spread = build.architecture == SPREAD
        self._kernels: dict[str, Kernel] = {}

    def blocks_at_once(self, shared: int, most: int) -> int:
        """Blocks that the whole device holds at a time, `most` a multiprocessor."""
        return self.processors * max(1, min(most, self.shared_total // (shared + _RESERVED_SHARED)))

    def most_rows(self, shared: Callable[[int], int], most: int) -> int:
        """The largest number of rows, up to `most`, whose shared memory a block can have; at least 1."""
        return next((rows for rows in range(most, 1, -1) if shared(rows) <= self.shared_most), 1)

    def launch(
        self,
        name: str,
        grid: tuple[int, int],
        threads: int,
        shared: int,
        arguments: Sequence[Any],
        cluster: int = 1,
    ) -> None:
        """Launch a kernel on PyTorch's current stream. cluster: neighbouring blocks that run together."""
        kernel = self._kernels.get(name)
        if kernel is None:
            kernel = self._kernels[name] = load(self.build.read(name))
        stream = torch.cuda.current_stream(self.device).cuda_stream
        kernel.launch(grid, threads, shared, stream, arguments, self.programmatic, cluster)

    def load_all(self) -> None:
        """Load every kernel now, so that none is loaded while a graph is captured."""
        for name in self.build.kernels():
            if name not in self._kernels:
                self._kernels[name] = load(self.build.read(name))


def architecture_of(device: torch.device) -> str | None:
    """The architecture of a CUDA device, or None when there are no kernels for it."""
    return architecture(torch.cuda.get_device_capability(device))


def wants_spread(device: torch.device) -> bool:
    """Whether a device's kernels take NVFP4 codes in the order of `kernels.spread`."""
    return device.type == "cuda" and architecture_of(device) == SPREAD
