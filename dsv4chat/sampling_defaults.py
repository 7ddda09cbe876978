"""How a model wants to be sampled: its generation_config.json, if it has one; neutral otherwise."""

import json
import math
import sys
from pathlib import Path
from typing import Any

from dsv4chat.runtime.protocol import SamplingParams

# What each is turned into, and between which values it is one.
_FIELDS: dict[str, tuple[type, float, float]] = {
    "temperature": (float, 0, math.inf),
    "top_p": (float, sys.float_info.min, 1),
    "top_k": (int, 0, math.inf),
    "min_p": (float, 0, 1),
    "repetition_penalty": (float, sys.float_info.min, math.inf),
}


def model_sampling(folder: Path) -> SamplingParams:
    """What a model folder names; `do_sample: false` is temperature 0.

    An unreadable file is neutral, and so is a value that is none (a top_k of -1 switches it off in some).
    """
    try:
        found = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return SamplingParams()
    if not isinstance(found, dict):
        return SamplingParams()
    values: dict[str, Any] = {
        name: kind(found[name])
        for name, (kind, low, high) in _FIELDS.items()
        if _is_number(found.get(name)) and low <= found[name] <= high
    }
    if found.get("do_sample") is False:
        values["temperature"] = 0.0
    return SamplingParams(**values)


def named(params: SamplingParams) -> dict[str, object]:
    """What differs from the neutral settings, by name."""
    neutral = SamplingParams()
    fields = {name: getattr(params, name) for name in params.__struct_fields__}
    return {name: value for name, value in fields.items() if value != getattr(neutral, name)}


def override(params: SamplingParams, given: dict[str, Any]) -> SamplingParams:
    """`params` with the values of `given` that are not None."""
    fields = {name: getattr(params, name) for name in params.__struct_fields__}
    return SamplingParams(**(fields | {name: value for name, value in given.items() if value is not None}))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
