"""How fast each kernel of the decode step reads at a model's real sizes."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from dsv4chat.kernels.cute import measuring, timing
from dsv4chat.kernels.cute.operations import KernelError, operations
from dsv4chat.runtime.bench_device import device_name
from dsv4chat.runtime.errors import EngineError
from dsv4chat.runtime.placement import choose_device


@dataclass(frozen=True)
class KernelTime:
    """One operation. bytes: that it must read; microseconds: the median of graph replays."""

    operation: str
    kernel: str
    bytes: int
    microseconds: float


@dataclass(frozen=True)
class KernelBenchmark:
    """bandwidth: bytes a second, measured in the same run."""

    geometry: str
    rows: int
    device: str
    bandwidth: float
    kernels: list[KernelTime]


def bench_kernels(geometry: str, rows: int = 1, say: Callable[[str], None] | None = None) -> KernelBenchmark:
    """Time the kernels for "flash" or "pro" with 1 to 8 rows. Raises EngineError where there are none."""
    sizes = {one.name: one for one in (measuring.FLASH, measuring.PRO)}
    if geometry not in sizes:
        raise EngineError(f"There is no geometry {geometry!r}; choose {' or '.join(sizes)}.")
    device = choose_device("cuda")
    try:
        machine = operations("cute", device, say).machine
    except KernelError as error:
        raise EngineError(str(error)) from error
    assert machine is not None
    with torch.inference_mode():
        bandwidth = measuring.bandwidth(device)
        times = [
            KernelTime(one.what, one.kernel, one.bytes, 1e6 * one.seconds)
            for one in timing.timings(machine, sizes[geometry], rows)
        ]
    return KernelBenchmark(geometry, rows, device_name(device), bandwidth, times)
