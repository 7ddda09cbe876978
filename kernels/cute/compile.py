"""Compiles kernels for one architecture: `python -m dsv4chat.kernels.cute.compile ARCHITECTURE FOLDER
NAME...`

A process of its own, because the DSL fixes its architecture when it is imported. Prints one line a kernel,
"name seconds"; FOLDER gets NAME.cubin and NAME.json (the entry's name and the bytes of its parameters). Needs
neither a GPU nor a driver.
"""

import json
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dsv4chat.kernels.cute.catalogue import PAIRS, PRODUCTS, family


def main(architecture: str, folder: str, names: list[str]) -> None:
    """Compile `names` into `folder`."""
    os.environ["CUTE_DSL_ARCH"] = architecture
    import cutlass.cute as cute

    dump = Path(folder) / "dump"
    dump.mkdir()
    for name in names:
        start = time.perf_counter()
        function, arguments = _entry(name)
        compiled = cute.compile(function, *arguments, options=f"--keep-ptx --keep-cubin --dump-dir {dump}")
        ptx = compiled.__ptx__
        about = {"entry": _entry_name(ptx), "parameters": _parameter_bytes(ptx)}
        (Path(folder) / f"{name}.json").write_text(json.dumps(about))
        (Path(folder) / f"{name}.cubin").write_bytes(compiled.__cubin__)
        print(name, f"{time.perf_counter() - start:.2f}", flush=True)


def _entry(name: str) -> tuple[Any, list[Any]]:
    """The host function of a kernel, and one argument of each of its types."""
    from cutlass import Float32, Int32, Int64

    from dsv4chat.kernels.cute import (
        attention_kernel,
        attention_merge_kernel,
        choice_kernel,
        connection_kernel,
        down_kernel,
        gate_up_kernel,
        index_choose_kernel,
        index_scores_kernel,
        linear_kernel,
        pair_kernel,
        router_kernel,
        rows_kernel,
        sampler_end_kernel,
        sampler_scan_kernel,
        start_kernel,
        units,
    )

    if family(name) in PAIRS:
        fmt = next(fmt for fmt in units.FORMATS if name.endswith(fmt.name))
        if name.startswith("choice"):
            return choice_kernel.choice(fmt), [*[Int64(0)] * 11, *[Int32(1)] * 8, Float32(1.0)]
        if name.startswith("pair"):
            return pair_kernel.pair(fmt), [*[Int64(0)] * 9, *[Int32(1)] * 13]
        return pair_kernel.router(fmt), [*[Int64(0)] * 7, *[Int32(1)] * 11, Float32(1.0)]
    hosts: dict[str, tuple[Callable[..., Any], int, int, int]] = {
        "linear": (linear_kernel.linear, 9, 15, 0),
        "gate_up": (gate_up_kernel.gate_up, 9, 12, 1),
        "down": (down_kernel.down, 11, 11, 0),
        "connection": (connection_kernel.connection, 12, 4, 2),
        "attention_partial": (attention_kernel.partial, 8, 6, 2),
        "attention_merge": (attention_merge_kernel.merge, 5, 2, 0),
        "router": (router_kernel.router, 6, 2, 1),
        "rows": (rows_kernel.rows, 25, 3, 1),
        "start": (start_kernel.start, 7, 3, 0),
        "sampler_scan": (sampler_scan_kernel.scan, 7, 2, 0),
        "sampler_end": (sampler_end_kernel.end, 16, 4, 0),
        "index_scores": (index_scores_kernel.scores, 6, 1, 1),
        "index_choose": (index_choose_kernel.choose, 3, 2, 0),
    }
    function, addresses, numbers, reals = hosts[family(name)]
    values = [Int64(0)] * addresses + [Int32(1)] * numbers + [Float32(1.0)] * reals
    if family(name) not in PRODUCTS:
        return function(), values
    fmt = next(fmt for fmt in units.FORMATS if fmt.name in name)
    kind = [] if family(name) == "down" else [name.endswith("_one")]
    return function(fmt, "_ragged" not in name, *kind), values


def _entry_name(ptx: str) -> str:
    found = re.search(r"\.visible \.entry (\w+)\(", ptx)
    assert found is not None
    return found.group(1)


def _parameter_bytes(ptx: str) -> list[int]:
    head = ptx[ptx.index(".visible .entry") :]
    return [int(bits) // 8 for bits in re.findall(r"\.param \.[ubsf](\d+)", head[: head.index(")")])]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
