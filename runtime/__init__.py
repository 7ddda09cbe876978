"""The embedded engine: the model, its cache, its checkpoints and the process that runs them.

`Engine` is resolved on first use, so that importing the messages (`dsv4chat.runtime.protocol`) or
`SamplingParams` loads neither torch nor numpy.
"""

from typing import TYPE_CHECKING, Any

from dsv4chat.runtime.errors import (
    CheckpointError,
    ConfigError,
    ContextOverflowError,
    EngineError,
    SamplingError,
    TokenizerMissingError,
)
from dsv4chat.runtime.protocol import SamplingParams

if TYPE_CHECKING:
    from dsv4chat.runtime.engine import Engine

__all__ = [
    "CheckpointError",
    "ConfigError",
    "ContextOverflowError",
    "Engine",
    "EngineError",
    "SamplingError",
    "SamplingParams",
    "TokenizerMissingError",
]


def __getattr__(name: str) -> Any:
    if name == "Engine":
        from dsv4chat.runtime.engine import Engine

        return Engine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
