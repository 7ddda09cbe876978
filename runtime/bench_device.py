"""What a benchmark has to know of the device: its name, how fast it reads, how many launches a graph has."""

import ctypes
import platform
import statistics
import time

import torch

from dsv4chat.runtime.gpu.decoding import Decoding

CPU_BYTES = 1 << 27


def device_name(device: torch.device) -> str:
    """The GPU's name, or the processor's."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu ({platform.processor() or platform.machine()}, {torch.get_num_threads()} threads)"


def read_bandwidth(device: torch.device) -> float:
    """Bytes a second that the device reads from memory far larger than its caches."""
    if device.type == "cuda":
        from dsv4chat.kernels.cute.measuring import bandwidth

        return bandwidth(device)
    values = torch.ones(CPU_BYTES // 4)
    times = []
    for _ in range(5):
        started = time.perf_counter()
        values.sum()
        times.append(time.perf_counter() - started)
    return values.nbytes / statistics.median(times)


def graph_nodes(decoding: Decoding, bucket: int) -> int:
    """Launches and copies in one step's graph, as the driver counts them."""
    graph = decoding.capture(bucket, keep=True)
    count = ctypes.c_size_t()
    driver = ctypes.CDLL("libcuda.so.1")
    status = driver.cuGraphGetNodes(ctypes.c_void_p(graph.raw_cuda_graph()), None, ctypes.byref(count))
    return count.value if status == 0 else 0
