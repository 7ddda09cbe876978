"""The kernels there are, by name. Knows neither the compiler nor a GPU.

Of a product a name is FAMILY_FORMAT, with `_ragged` for matrices whose columns are no multiple of what a warp
reads at once and `_one` for one row of activations. `SOURCES`: the files a kernel's machine code depends on;
their text is part of the cache's key.
"""

import hashlib
from functools import cache
from pathlib import Path

ARCHITECTURES = ("sm_90a", "sm_100a")
FORMATS = ("nvfp4", "fp8", "bf16")
PRODUCTS = ("linear", "gate_up", "down")
PAIRS = ("pair_fp8", "pair_nvfp4", "router_fp8", "router_nvfp4", "choice_fp8", "choice_nvfp4")
OTHERS = (
    *PAIRS,
    "start",
    "connection",
    "router",
    "attention_partial",
    "attention_merge",
    "rows",
    "index_scores",
    "index_choose",
    "sampler_scan",
    "sampler_end",
)

SOURCES = (
    "activations.py",
    "arithmetic.py",
    "attention_kernel.py",
    "attention_merge_kernel.py",
    "attention_staging.py",
    "barriers.py",
    "choice_kernel.py",
    "compile.py",
    "connection_kernel.py",
    "decode.py",
    "down_kernel.py",
    "encode.py",
    "gate_up_kernel.py",
    "gemv.py",
    "hosting.py",
    "index_choose_kernel.py",
    "index_scores_kernel.py",
    "linear_kernel.py",
    "one_row.py",
    "pair_kernel.py",
    "prefetching.py",
    "ptx.py",
    "reductions.py",
    "router_kernel.py",
    "rows_kernel.py",
    "runs.py",
    "sampler_end_kernel.py",
    "sampler_scan_kernel.py",
    "sinkhorn.py",
    "spread_order.py",
    "start_kernel.py",
    "stored_rows.py",
    "target.py",
    "together.py",
    "units.py",
)


def names() -> list[str]:
    """Every kernel."""
    products = [
        f"{family}_{format}{ragged}"
        for family in PRODUCTS
        for format in FORMATS
        for ragged in ("", "_ragged")
    ]
    ones = [
        f"{family}_{format}{ragged}_one"
        for family, format in (("linear", "nvfp4"), ("linear", "fp8"), ("gate_up", "nvfp4"))
        for ragged in ("", "_ragged")
    ]
    return [*products, *ones, *OTHERS]


def family(name: str) -> str:
    """A kernel's name without format and `_ragged`."""
    return next(one for one in (*PRODUCTS, *OTHERS) if name == one or name.startswith(f"{one}_"))


@cache
def source_key() -> str:
    """Twelve hexadecimal digits that change with the text of any kernel."""
    digest = hashlib.sha256()
    for name in SOURCES:
        digest.update(name.encode() + b"\0" + Path(__file__).with_name(name).read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def architecture(capability: tuple[int, int]) -> str | None:
    """The architecture whose machine code a GPU of this compute capability runs, or None."""
    name = f"sm_{capability[0]}{capability[1]}a"
    return name if name in ARCHITECTURES else None
