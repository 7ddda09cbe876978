"""Errors of the runtime. Each carries one sentence that says what is wrong and what to do."""


class EngineError(Exception):
    """Anything the runtime refuses or cannot do; `str(error)` is meant for a person."""


class ConfigError(EngineError):
    """config.json is missing, unreadable, or describes a model this runtime cannot run."""


class CheckpointError(EngineError):
    """A weight file is missing, damaged, or holds a tensor of the wrong name, shape or format."""


class TokenizerMissingError(EngineError):
    """The operation needs text, and the model folder has no usable tokenizer.json."""


class ContextOverflowError(EngineError):
    """The prompt does not fit into the context the engine was loaded with."""


class SamplingError(EngineError):
    """Sampling parameters out of range, or logits that cannot be sampled (NaN, all -inf)."""


class SavedCacheError(EngineError):
    """A saved cache cannot be used or written: damaged, gone, of another model or version, no room."""
