"""How torch and numpy use the cores. To be decided before either is imported: both read it then.

Their threads normally wait for the next piece of work by spinning. When another program wants the same cores,
the thread that all wait for is often the one that does not run: a prefill of 20 tokens was measured at 0.4 s
with sleeping threads and at 2 to 16 s with spinning ones, on two cores with a load of 5. So they sleep.
"""

import os
from pathlib import Path

COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# OpenBLAS: threads sleep after 2^value cycles, 4 being the least it takes.
WAITING = {"OMP_WAIT_POLICY": "PASSIVE", "OPENBLAS_THREAD_TIMEOUT": "4"}


def decide_threads(count: int | None = None) -> int:
    """Let the libraries use `count` threads; by default OMP_NUM_THREADS, else one a physical core.

    A second thread on the same core finds its units busy and only takes time from other programs. How threads
    wait is left as it is where the environment says so already. Returns the number.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "")
    count = count or (int(asked) if asked.isdecimal() else 0) or physical_cores()
    for variable in COUNTS:
        os.environ[variable] = str(count)
    for variable, value in WAITING.items():
        os.environ.setdefault(variable, value)
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
