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
from pathlib import Path
from typing import Any


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

    from dsv4chat.kernels.cute import experts_kernel, gemv, linear_kernel

    family, format, *ragged = name.removeprefix("gate_").split("_")
    fmt = next(fmt for fmt in gemv.FORMATS if fmt.name == format)
    addresses, numbers, floats = {
        "linear": (7, 8, 0),
        "up": (9, 9, 1),
        "down": (9, 4, 0),
    }[family]
    function = {
        "linear": linear_kernel.linear,
        "up": experts_kernel.gate_up,
        "down": experts_kernel.down,
    }[family]
    values = [Int64(0)] * addresses + [Int32(1)] * numbers + [Float32(1.0)] * floats
    return function, [fmt, not ragged, *values]


def _entry_name(ptx: str) -> str:
    found = re.search(r"\.visible \.entry (\w+)\(", ptx)
    assert found is not None
    return found.group(1)


def _parameter_bytes(ptx: str) -> list[int]:
    head = ptx[ptx.index(".visible .entry") :]
    return [int(bits) // 8 for bits in re.findall(r"\.param \.[ubsf](\d+)", head[: head.index(")")])]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
