"""How fast a checkpoint gets from its files to the device that runs it."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from dsv4chat.runtime.bench_device import device_name
from dsv4chat.runtime.opening import load_model, source_of
from dsv4chat.runtime.placement import choose_device, choose_dtype


@dataclass(frozen=True)
class LoadBenchmark:
    """bytes: as stored; seconds: from opening the files to the last byte on the device; rate: bytes a second.

    device_bytes: what the weights take there; 0 on a CPU.
    """

    model: str
    device: str
    tensors: int
    bytes: int
    seconds: float
    rate: float
    device_bytes: int


def bench_load(
    name: str,
    device: str = "auto",
    dtype: str = "auto",
    progress: Callable[[int, int, int, int], None] | None = None,
) -> LoadBenchmark:
    """Load a model folder, "demo" or random weights, and time it. Errors as for `Engine.load`."""
    place = choose_device(device)
    cuda = place.type == "cuda"
    before = torch.cuda.memory_allocated(place) if cuda else 0
    started = time.perf_counter()
    source, _ = source_of(name, place)
    model = load_model(source, place, choose_dtype(dtype, place), progress, "torch")
    if cuda:
        torch.cuda.synchronize(place)
    seconds = time.perf_counter() - started
    used = torch.cuda.memory_allocated(place) - before if cuda else 0
    del model
    tensors, stored = sum(1 for _ in source.names()), source.bytes_total
    return LoadBenchmark(name, device_name(place), tensors, stored, seconds, stored / seconds, used)
