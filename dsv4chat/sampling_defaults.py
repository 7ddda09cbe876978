"""How a model wants to be sampled: its generation_config.json, if it has one; neutral otherwise."""

import json
from pathlib import Path
from typing import Any

from dsv4chat.runtime.protocol import SamplingParams

_FIELDS: dict[str, type] = {
    "temperature": float,
    "top_p": float,
    "top_k": int,
    "min_p": float,
    "repetition_penalty": float,
}


def model_sampling(folder: Path) -> SamplingParams:
    """What a model folder names; `do_sample: false` is temperature 0, an unreadable file is neutral."""
    try:
        found = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return SamplingParams()
    if not isinstance(found, dict):
        return SamplingParams()
    values: dict[str, Any] = {
        name: kind(found[name])
        for name, kind in _FIELDS.items()
        if isinstance(found.get(name), int | float) and not isinstance(found[name], bool)
    }
    if found.get("do_sample") is False:
        values["temperature"] = 0.0
    return SamplingParams(**values)


def override(params: SamplingParams, given: dict[str, Any]) -> SamplingParams:
    """`params` with the values of `given` that are not None."""
    fields = {name: getattr(params, name) for name in params.__struct_fields__}
    return SamplingParams(**(fields | {name: value for name, value in given.items() if value is not None}))
