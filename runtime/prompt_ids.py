"""What may be fed: ids of the model's vocabulary, as many as the context holds, in chunks that add up.

Whole numbers are checked for being some: True, 1.5 and a negative one are told here, where they were given.
"""

import operator
from collections.abc import Iterable, Sequence

from torch import Tensor

from dsv4chat.runtime.errors import ContextOverflowError, EngineError


def checked_ids(ids: Sequence[int] | Tensor, vocab_size: int, max_context: int) -> list[int]:
    """The ids as a list. Raises EngineError for none, or one that is no id; ContextOverflowError."""
    try:
        checked = [_whole(token) for token in (ids.tolist() if isinstance(ids, Tensor) else ids)]
    except TypeError:
        raise EngineError("Token ids must be whole numbers.") from None
    if not checked:
        raise EngineError("There are no ids to continue; give at least one.")
    last = vocab_size - 1
    for token in checked:
        if not 0 <= token <= last:
            raise EngineError(
                f"Token id {token} is outside the model's vocabulary (0 to {last}); the ids come from "
                "another model's tokenizer."
            )
    if len(checked) > max_context:
        raise ContextOverflowError(
            f"The prompt has {len(checked):,} tokens and the context holds {max_context:,}; "
            "shorten the conversation or load the model with a larger context (--max-context)."
        )
    return checked


def chunk_sizes(count: int, chunk: Iterable[int] | int | None) -> list[int]:
    """Sizes that add up to `count`: of one chunk, of chunks of a size, or those given. Raises EngineError."""
    if chunk is None:
        return [count]
    if not isinstance(chunk, Iterable):
        chunk = at_least(1, chunk, "The chunk size")
        return [min(chunk, count - start) for start in range(0, count, chunk)]
    try:
        sizes = [_whole(size) for size in chunk]
    except TypeError:
        raise EngineError("Chunk sizes must be whole numbers.") from None
    if sum(sizes) != count or any(size < 1 for size in sizes):
        raise EngineError(f"The chunks {sizes} must be 1 or more each and add up to the {count} ids given.")
    return sizes


def checked_boundaries(boundaries: Iterable[int], count: int) -> list[int]:
    """The boundaries of a prompt of `count` ids as a list. Raises EngineError for one that is outside it."""
    try:
        checked = [_whole(boundary) for boundary in boundaries]
    except TypeError:
        raise EngineError("Boundaries must be whole numbers.") from None
    for boundary in checked:
        if not 0 <= boundary <= count:
            raise EngineError(f"The boundary {boundary} is outside the prompt (0 to {count}).")
    return checked


def at_least(least: int, value: object, name: str) -> int:
    """The number. Raises EngineError, in which it is called `name`, if it is smaller or not whole."""
    try:
        number = _whole(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise EngineError(f"{name} is {value!r}; it must be a whole number, {least} or more.")
    return number


def _whole(value: object) -> int:
    """A whole number; TypeError for anything else, True and False included."""
    if isinstance(value, bool):
        raise TypeError
    return operator.index(value)  # type: ignore[arg-type]
