"""How the ids of a turn are cut into the chunks that are fed."""

from collections.abc import Iterable
from itertools import pairwise

from dsv4chat.runtime.errors import EngineError

# The most ids fed at once, and the distance of the marks inside a long message: a multiple of 128, where no
# block of either ratio is open.
PREFILL_STEP = 256
# On a CPU so few ids take less time one by one, in the step made for decoding, than as a chunk.
FEW = 4


def cut(start: int, end: int, boundaries: Iterable[int], step: int) -> list[int]:
    """Where chunks end when positions start..end are fed: at boundaries, multiples of `step`, and `end`."""
    if step < 1:
        raise EngineError(f"The prefill step is {step}; it must be 1 or more.")
    inner = {position for position in boundaries if start < position < end}
    inner.update(range(start - start % step + step, end, step))
    return [*sorted(inner), end] if end > start else []


def chunk_sizes(
    start: int, end: int, boundaries: Iterable[int], step: int, *, few_alone: bool = False
) -> list[int]:
    """The sizes of those chunks. few_alone: up to FEW ids are fed one by one instead of as a chunk."""
    sizes = [b - a for a, b in pairwise([start, *cut(start, end, boundaries, step)])]
    if few_alone:
        sizes = [part for size in sizes for part in ([1] * size if size <= FEW else [size])]
    return sizes
