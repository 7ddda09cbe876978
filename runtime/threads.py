"""How many threads torch and numpy compute with; decided before either is imported, for both read it then."""

import os
from pathlib import Path

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def decide_threads(count: int | None = None) -> int:
    """Let the libraries use `count` threads; by default OMP_NUM_THREADS, else one a physical core.

    A second thread on the same core finds its units busy and only takes time from other programs.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "")
    count = count or (int(asked) if asked.isdecimal() else 0) or physical_cores()
    for variable in VARIABLES:
        os.environ[variable] = str(count)
    return count


def physical_cores() -> int:
    """The cores this process may run on, hardware threads of one core counted once."""
    if not hasattr(os, "sched_getaffinity"):  # macOS, whose processors mostly have one thread a core
        return os.cpu_count() or 1
    return max(1, len({_siblings(processor) for processor in os.sched_getaffinity(0)}))


def _siblings(processor: int) -> str:
    path = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return str(processor)
