"""A kernel's host side, of which only the machine code is used: `driver` launches it with its own grid."""

from collections.abc import Callable
from typing import Any

import cutlass.cute as cute


def host(
    kernel: Callable[..., Any], threads: int, *constants: Any, blocks: int = 0, fewer: bool = False
) -> Any:
    """A function for `cute.compile` that takes the kernel's arguments behind `constants`.

    blocks: what a multiprocessor is to hold at a time, which limits registers; 0: whatever comes of it.
    fewer: a launch may have fewer threads.
    """
    limits: dict[str, Any] = {"min_blocks_per_mp": blocks, "preferred_smem_carveout": 100} if blocks else {}
    if fewer:
        limits["max_number_threads"] = (threads, 1, 1)

    @cute.jit  # type: ignore[untyped-decorator, unused-ignore]
    def launch(*arguments: Any) -> None:
        kernel(*constants, *arguments).launch(grid=(1, 1, 1), block=(threads, 1, 1), **limits)

    return launch
