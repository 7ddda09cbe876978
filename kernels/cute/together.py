"""Single instructions that the lanes of a warp carry out together."""

from typing import Any

from cutlass import Int32

from dsv4chat.kernels.cute.ptx import asm


def lanes_like_this(value: Any) -> Any:
    """A bit for each lane of the warp with the same Int32."""
    return asm("match.any.sync.b32 $0, $1, 0xffffffff;", [Int32], [value], volatile=True)


def publish() -> None:
    """What this thread wrote is there for all that the GPU does after it."""
    asm("fence.acq_rel.gpu;", [], [], volatile=True)


def warp_max(value: Any) -> Any:
    """The largest Int32 of a warp's lanes, for all of them."""
    return asm("redux.sync.max.s32 $0, $1, 0xffffffff;", [Int32], [value], volatile=True)


def warp_min(value: Any) -> Any:
    return asm("redux.sync.min.s32 $0, $1, 0xffffffff;", [Int32], [value], volatile=True)


def warp_sum(value: Any) -> Any:
    """The sum of a warp's Int32, for all lanes."""
    return asm("redux.sync.add.s32 $0, $1, 0xffffffff;", [Int32], [value], volatile=True)


def ballot(value: Any) -> Any:
    """A bit for each lane of the warp whose Int32 is not 0."""
    return asm(
        "{ .reg .pred p; setp.ne.s32 p, $1, 0; vote.sync.ballot.b32 $0, p, 0xffffffff; }",
        [Int32],
        [value],
        volatile=True,
    )
